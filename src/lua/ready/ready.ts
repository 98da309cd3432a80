import { clock } from "../fragments/clock.ts";
import { asBuffer, asNumber, asRows } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Puts payloads at the end of the ready LIST of a partition; returns the new length of the LIST. */
export const pushReady = defineScript({
  name: "push-ready",
  keys: ["ready"],
  args: [],
  each: ["payload"],
  lua: /* lua */ `
local length = 0
for each row do length = redis.call("RPUSH", ready, payload) end
return length
`,
  reply: asNumber,
});

/** A payload, and the LIST that it was popped from. */
export interface Popped {
  /** The index of the LIST among the rows. */
  readonly row: number;
  readonly payload: Buffer;
}

/**
 * Pops up to `count` payloads from several ready LISTs: about as many from each, and the rest from those that hold
 * more. If `count` is less than the number of LISTs, the first rows are served. Payloads of one LIST keep their order.
 *
 * All LISTs have to be on one node, so the script is not for a Cluster.
 *
 * No rollback: a LIST that Redis refuses to pop from (WRONGTYPE) is skipped, and the payloads of the others are
 * returned. The refusal is the reply only if nothing was popped.
 *
 * Must not be sent twice: use the connection that never resends.
 */
export const popFromMany = defineScript({
  name: "pop-from-many",
  keys: [],
  args: ["count"],
  each: ["list"],
  rowsAs: "keys",
  lua: /* lua */ `
local left, open, popped, refusal = tonumber(count), {}, {}, nil
for each row do open[#open + 1] = row end
while left > 0 and #open > 0 do
  local filled = {}
  for i, row in ipairs(open) do
    local wanted = math.ceil(left / (#open - i + 1))
    if wanted == 0 then break end
    local found = redis.pcall("LPOP", KEYS[row], wanted)
    if found and found.err then
      refusal = found
    elseif found then
      for _, payload in ipairs(found) do
        popped[#popped + 1] = row - 1
        popped[#popped + 1] = payload
      end
      left = left - #found
      if #found == wanted then filled[#filled + 1] = row end
    end
  end
  open = filled
end
if refusal and #popped == 0 then return refusal end
return popped
`,
  reply: (raw): Popped[] => asRows(raw, { row: asNumber, payload: asBuffer }),
});

/**
 * Puts unclaimed payloads, oldest first, back to the head of the ready LIST. Returns how many; 0 if they were back
 * already.
 *
 * A payload has no id, so a receipt makes the script safe to send again: if the receipt exists, an earlier run has done
 * the work. Receipts are in a ZSET, by the instant at which they were written. A caller removes its receipt once it has
 * the reply. Receipts of dead callers are dropped after a day.
 *
 * Redis rolls nothing back, so the receipt is written before the push, and removed if the push is refused. The first
 * removal, of nothing or of old receipts, proves that removing is permitted before the receipt is written. It serves a
 * second purpose: when memory is full, Redis refuses only the first write of a script, and never a removal, so the
 * writes behind the removal pass.
 */
export const giveBack = defineScript({
  name: "give-back",
  keys: ["ready", "receipts"],
  args: ["receipt"],
  each: ["payload"],
  needs: [clock],
  lua: /* lua */ `
if redis.call("ZSCORE", receipts, receipt) then return 0 end
local now = math.floor(clock() / 1000)
local old = redis.call("ZRANGEBYSCORE", receipts, "-inf", now - 86400000, "LIMIT", 0, 100)
redis.call("ZREM", receipts, receipt, unpack(old))
redis.call("ZADD", receipts, now, receipt)
local payloads, newestFirst = {}, {}
for each row do payloads[#payloads + 1] = payload end
for i = #payloads, 1, -1 do newestFirst[#newestFirst + 1] = payloads[i] end
local done = redis.pcall("EXPIRE", receipts, 86400)
if type(done) == "number" then done = redis.pcall("LPUSH", ready, unpack(newestFirst)) end
if type(done) == "table" then
  redis.call("ZREM", receipts, receipt)
  return done
end
return #payloads
`,
  reply: asNumber,
});

/** Drops all ready messages; returns how many there were. Redis frees the memory in the background. */
export const clearReady = defineScript({
  name: "clear-ready",
  keys: ["ready"],
  args: [],
  lua: /* lua */ `
local count = redis.call("LLEN", ready)
redis.call("UNLINK", ready)
return count
`,
  reply: asNumber,
});
