import { addressOf } from "../fragments/address.ts";
import { appendAll } from "../places/stream.ts";
import { clock } from "../fragments/clock.ts";
import { asFlag, asNumber, asRow } from "../reply.ts";
import { defineScript } from "../script.ts";
import { may } from "../fragments/may.ts";

export interface TakeOverReply {
  /** How many payloads became entries. */
  readonly moved: number;
  /** Whether the LIST holds more. */
  readonly areMore: boolean;
  /** Whether the queue is plain: there is no stream, and `makes` was 0. Nothing was moved. */
  readonly isPlain: boolean;
}

/**
 * Moves payloads from the head of the ready LIST to the stream of a reliable queue, in order. Programs that do not
 * know the stream have pushed them. Each row has the id of one new message, whose deadline is now. `makes` (1 or 0):
 * whether to create the stream if it is missing.
 *
 * No rollback: the script first checks that trimming is permitted, and appends payloads before it trims them. What was
 * appended before a refusal is trimmed, and the next run reports the refusal.
 */
export const takeOver = defineScript({
  name: "take-over",
  keys: ["ready", "stream"],
  args: ["makes"],
  each: ["id"],
  needs: [clock, addressOf, appendAll, may],
  lua: /* lua */ `
local ids = {}
for each row do ids[#ids + 1] = id end
-- One more than there are ids, to see whether there are more.
local payloads = redis.call("LRANGE", ready, 0, #ids)
if #payloads == 0 then return { 0, 0, 0 } end
local areMore = #payloads > #ids
if areMore then payloads[#payloads] = nil end
if makes ~= "1" and redis.call("EXISTS", stream) == 0 then return { 0, 1, 1 } end
local now, entries = math.floor(clock() / 1000), {}
for i, payload in ipairs(payloads) do entries[i] = { a = addressOf(now, ids[i]), p = payload } end
may("LTRIM", ready)
local moved, refusal = appendAll(entries)
if refusal and moved == 0 then return refusal end
redis.call("LTRIM", ready, moved, -1)
return { moved, (areMore or refusal) and 1 or 0, 0 }
`,
  reply: (raw): TakeOverReply => asRow(raw, { moved: asNumber, areMore: asFlag, isPlain: asFlag }),
});
