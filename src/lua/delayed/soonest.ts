import { compareBytes } from "../fragments/address.ts";
import { replied } from "../fragments/deadline.ts";
import { asBuffer, asRow, asText } from "../reply.ts";
import { defineScript } from "../script.ts";
import { asMembers, type DelayedMember } from "./get.ts";

/** The position of a reader in the order of the deadlines: the score of the last member, and its first bytes. */
export interface DeadlineCursor {
  readonly score: string;
  readonly start: Buffer;
}

/** Before the first message. */
export const FIRST: DeadlineCursor = { score: "", start: Buffer.alloc(0) };

/**
 * Returns up to `step` next messages of a ZSET of members by deadline, and about `maxBytes`, in the order of their deadlines, and equal deadlines in the
 * order of their ids. O(log N): a binary search among the equal deadlines finds the position behind the last message, even
 * if that message has left.
 *
 * The first 32 bytes of a member suffice to find its position, since they contain the id. Members that differ only behind
 * them are garbage.
 */
export const soonest = defineScript({
  name: "soonest",
  keys: ["zset"],
  args: ["score", "start", "step", "maxBytes"],
  needs: [compareBytes, replied],
  lua: /* lua */ `
local function startOf(member)
  return member:sub(1, 32) .. string.rep("\\0", 32 - #member)
end
local rank = 0
if score ~= "" then
  rank = redis.call("ZCOUNT", zset, "-inf", "(" .. score)
  local high = rank + redis.call("ZCOUNT", zset, score, score)
  while rank < high do
    local at = math.floor((rank + high) / 2)
    local member = redis.call("ZRANGE", zset, at, at)[1]
    if compareBytes(startOf(member), 1, start, 1, 32) > 0 then high = at else rank = at + 1 end
  end
end
step, maxBytes = tonumber(step), tonumber(maxBytes)
local messages, size = {}, 0
while #messages < 2 * step and size < maxBytes do
  -- A few at a time, since each member may be large.
  local count = math.min(4, step - #messages / 2)
  local found = redis.call("ZRANGE", zset, rank, rank + count - 1, "WITHSCORES")
  for i = 1, #found, 2 do
    messages[#messages + 1] = replied(tonumber(found[i + 1]))
    messages[#messages + 1] = found[i]
    score, start, size = found[i + 1], found[i], size + #found[i]
  end
  if #found < 2 * count then break end
  rank = rank + count
end
if #messages == 0 then return false end
return { score, startOf(start), messages }
`,
  reply: (raw): { next: DeadlineCursor | undefined; messages: readonly DelayedMember[] } => {
    if (raw === null) return { next: undefined, messages: [] };
    const { messages, ...next } = asRow(raw, {
      score: asText,
      start: asBuffer,
      messages: asMembers,
    });
    return { next, messages };
  },
});
