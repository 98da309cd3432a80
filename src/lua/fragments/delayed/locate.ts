import { defineFragment } from "../../fragment.ts";
import { address } from "../message/address.ts";
import { bytes } from "../message/bytes.ts";

/**
 * Find by address, in O(log N): the first member with the deadline; if that is another one, a binary
 * search by rank among the equal deadlines, since ties sort by member bytes, which for ids of one
 * length is by id.
 *
 * `compareTo(member, address)`: negative, 0 or positive, as the message with the address stands
 * before, at or behind a member of its deadline.
 * `locate(address)`: the member and the deadline of the message with this deadline and id (of 8 or 16
 * bytes), or nil if it is gone; and its rank, or that of the next one, if it came to a binary search.
 * `spent()`: what looking has cost so far: 1 for each look into the ZSET, and 1 for each 4 KB that it
 * read. `spend(member)`: adds what it costs to use a member's bytes once more, such as in a reply.
 */
export const locate = defineFragment({
  keys: ["timeouts"],
  needs: [bytes, address],
  lua: /* lua */ `
local cost = 0
local function spent()
  return cost
end
local function spend(member)
  cost = cost + #member / 4096
end
local function compareTo(member, address)
  local length = #address - 8
  -- A member begins with its id's length.
  local order = length - (member:byte(1) or 0)
  if order ~= 0 then return order end
  local isBroken = #member < length + 9
  if isBroken then member = member .. string.rep("\\0", length) end
  order = compareBytes(address, 9, member, 2, length)
  -- In the ZSET the shorter one stands before.
  return isBroken and order == 0 and 1 or order
end
local function locate(address)
  local deadline = deadlineOf(address)
  if deadline ~= deadline then return nil end
  local text = string.format("%.17g", deadline)
  local member = redis.call("ZRANGEBYSCORE", timeouts, text, text, "LIMIT", 0, 1)[1]
  cost = cost + 1 + (member and #member or 0) / 4096
  local order = member and compareTo(member, address) or -1
  if order == 0 then return member, deadline end
  if order < 0 then return nil end
  local low = redis.call("ZCOUNT", timeouts, "-inf", "(" .. text)
  local high = low + redis.call("ZCOUNT", timeouts, text, text) - 1
  while low < high do
    -- The lowest rank is known to be another one.
    local at = math.ceil((low + high) / 2)
    member = redis.call("ZRANGE", timeouts, at, at)[1]
    cost = cost + 1 + #member / 4096
    order = compareTo(member, address)
    if order == 0 then return member, deadline, at end
    if order < 0 then high = at - 1 else low = at end
  end
  return nil, nil, low + 1
end
`,
});
