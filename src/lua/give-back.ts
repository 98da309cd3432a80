import { asNumber, defineScript } from "./script.ts";

/**
 * Puts payloads that nobody took back to the head of the target LIST, oldest first. Arguments behind
 * the named ones: the payloads. Answers how many.
 *
 * A payload has no id, so a receipt makes it safe to send again: where the receipt exists the first
 * copy was carried out. It expires after a day.
 *
 * When memory is full Redis refuses only the first write of a script, and never a removal: hence the
 * DEL of what is not there.
 */
export const giveBack = defineScript({
  name: "give-back",
  keys: ["target", "receipt"],
  args: [],
  lua: /* lua */ `
if redis.call("EXISTS", receipt) == 1 then return 0 end
redis.call("DEL", receipt)
redis.call("SET", receipt, 1, "EX", 86400)
local payloads = {}
for i = #ARGV, REST, -1 do payloads[#payloads + 1] = ARGV[i] end
local pushed = redis.pcall("LPUSH", target, unpack(payloads))
if type(pushed) == "table" then
  redis.call("DEL", receipt)
  return pushed
end
return #ARGV - REST + 1
`,
  reply: asNumber,
});
