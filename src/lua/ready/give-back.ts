import { clock } from "../fragments/clock.ts";
import { asNumber } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * Puts payloads that nobody took, oldest first, back to the head of the ready LIST. Returns how many; 0 if they were
 * back already.
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
