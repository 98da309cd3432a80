import { clock } from "../fragments/clock.ts";
import { LOOK_AFTER } from "../fragments/once-record.ts";
import { onceHolder, onceRecord } from "../places/once.ts";
import { asArray, asBuffer, asFlag, asNumber, asRow, asText, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";
import type { OnceStage } from "../places/once.ts";

/** A message that was offered with `once`, and is ready, running, retrying or handled. */
export interface OnceHolder {
  readonly stage: OnceStage;
  readonly address: Buffer;
  /** When it was handled (epoch ms); undefined if it was not. */
  readonly handledAt: number | undefined;
  /** Whether its key is taken by it. A message that was handled may be known for longer. */
  readonly isTaken: boolean;
}

/** Returns for each key what is remembered of the message that was offered with `once` under it. Reads only. */
export const onceHeld = defineScript({
  name: "once-held",
  keys: ["once"],
  args: [],
  each: ["key"],
  needs: [clock],
  rarely: [onceHolder],
  lua: /* lua */ `
local now, replies = nil, {}
for each row do
  local reply = false
  if redis.call("HGET", once, key) then
    now = now or clock() / 1000
    local stage, address, at, isTaken = rare().onceHolder(key, now)
    if stage then reply = { stage, address, at or false, isTaken and 1 or 0 } end
  end
  replies[#replies + 1] = reply
end
return replies
`,
  reply: (raw): (OnceHolder | undefined)[] =>
    asArray(raw).map(
      orNothing((row) =>
        asRow(row, {
          stage: (stage) => asText(stage) as OnceStage,
          address: asBuffer,
          handledAt: orNothing(asNumber),
          isTaken: asFlag,
        }),
      ),
    ),
});

/**
 * Looks at up to `limit` records whose time has come, and drops those that have nothing to say any more. Returns whether there may
 * be more.
 */
export const forgetOnce = defineScript({
  name: "forget-once",
  keys: ["once", "onceEnds"],
  args: ["limit"],
  needs: [clock],
  rarely: [onceRecord],
  lua: /* lua */ `
local now = math.floor(clock() / 1000)
local due = redis.call("ZRANGEBYSCORE", onceEnds, "-inf", string.format("%.0f", now), "LIMIT", 0, limit)
for _, key in ipairs(due) do
  local record = rare().recordOf(key)
  local next = record and (rare().placeIn(record) and now + ${LOOK_AFTER} or rare().endOf(record)) or 0
  if next > now then
    redis.call("ZADD", onceEnds, next, key)
  else
    redis.call("HDEL", once, key)
    redis.call("ZREM", onceEnds, key)
  end
end
return #due == tonumber(limit) and 1 or 0
`,
  reply: asFlag,
});
