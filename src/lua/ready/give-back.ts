import { clock } from "../fragments/clock.ts";
import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Puts payloads that nobody took back to the head of the ready LIST, oldest first. Returns how
 * many.
 *
 * A payload has no id, so a receipt makes it safe to send again: where the receipt exists the first
 * copy was carried out. Receipts stand in a ZSET by the time at which they were written. The caller
 * removes its own once it has the reply; those of callers that have died are dropped after a day.
 *
 * Redis rolls nothing back, so a receipt is written before the push, and taken back if the push is
 * refused. That it may be taken back is tried before it is written: by the first removal, of nothing
 * or of old receipts. When memory is full Redis refuses only the first write of a script, and never a
 * removal; so the same removal lets the others pass.
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
