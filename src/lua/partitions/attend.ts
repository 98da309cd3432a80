import { clock } from "../fragments/clock.ts";
import { asNumber, asRow, asRows, asText, orNothing, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/** The processes that have a queue open, and the fact. */
export interface Attendance {
  /** The stored fact, if there is one; see `fact.ts`. */
  readonly fact: string | undefined;
  /** The processes that were seen lately, in no particular order; `idle` is how many milliseconds ago. */
  readonly members: readonly { readonly member: string; readonly idle: number }[];
}

/**
 * Notes that the process `member` has the queue open or, if `gone` is 1, that it no longer has. Returns all processes
 * that have the queue open.
 *
 * Drops members that were not seen for `timeout` milliseconds, and those seen that far in the future: the clock has
 * been set back since. The removal comes first: after a removal Redis accepts every write of the script, even if its
 * memory is full.
 */
export const attend = defineScript({
  name: "attend",
  keys: ["members", "partitions"],
  args: ["member", "timeout", "gone"],
  needs: [clock],
  lua: /* lua */ `
local fact = redis.call("GET", partitions)
local now = math.floor(clock() / 1000)
local found, seen, gones = redis.call("ZRANGE", members, 0, -1, "WITHSCORES"), {}, { "" }
if gone == "1" then gones[2] = member end
for i = 1, #found, 2 do
  local idle = now - found[i + 1]
  if math.abs(idle) >= tonumber(timeout) then
    if #gones < 1000 then gones[#gones + 1] = found[i] end
  elseif found[i] ~= member then
    seen[#seen + 1] = found[i]
    seen[#seen + 1] = idle
  end
end
redis.call("ZREM", members, unpack(gones))
if gone ~= "1" then
  redis.call("ZADD", members, now, member)
  seen[#seen + 1] = member
  seen[#seen + 1] = 0
end
redis.call("EXPIRE", members, math.ceil(timeout / 100))
return { fact, seen }
`,
  reply: (raw: RawReply): Attendance =>
    asRow(raw, {
      fact: orNothing(asText),
      members: (rows) => asRows(rows, { member: asText, idle: asNumber }),
    }),
});
