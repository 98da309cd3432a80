import { defineFragment } from "../fragment.ts";
import { compareBytes, deadlineOf, isAddress } from "../fragments/address.ts";
import { ownKeys } from "../fragments/key-entry.ts";
import { unpackMember } from "../fragments/member.ts";

/**
 * The cost of look-ups.
 *
 * `cost`: of all look-ups so far: 1 for each read of the ZSET, plus 1 for each 4 KB that it returned.
 */
const costs = defineFragment({ lua: "local cost = 0" });

/**
 * `spent()`: the cost of all look-ups so far: 1 for each read of the ZSET, plus 1 for each 4 KB that it returned.
 * `spend(member)`: adds the cost of using a member's bytes once more, such as in a reply.
 */
export const spending = defineFragment({
  needs: [costs],
  lua: /* lua */ `
local function spent()
  return cost
end
local function spend(member)
  cost = cost + #member / 4096
end
`,
});

/**
 * `compareTo(member, address)`: negative, 0 or positive, as the message with the address sorts before, at or behind a
 * member with the same deadline.
 */
const compareTo = defineFragment({
  needs: [compareBytes],
  lua: /* lua */ `
local function compareTo(member, address)
  local length = #address - 8
  -- A member begins with its id's length.
  local order = length - (member:byte(1) or 0)
  if order ~= 0 then return order end
  local isBroken = #member < length + 9
  -- Faster than by numbers, and nearly always so.
  if not isBroken and member:sub(2, length + 1) == address:sub(9) then return 0 end
  if isBroken then member = member .. string.rep("\\0", length) end
  order = compareBytes(address, 9, member, 2, length)
  -- In the ZSET the shorter member sorts first.
  return isBroken and order == 0 and 1 or order
end
`,
});

/**
 * `searchEqual(zset, address, first, deadline, text)`: what `locate` returns, if `first` is the first member with this
 * deadline and another message. `text` is the deadline as Redis reads it.
 */
const searchEqual = defineFragment({
  needs: [compareTo, costs],
  lua: /* lua */ `
local function searchEqual(zset, address, first, deadline, text)
  if compareTo(first, address) < 0 then return nil end
  local low = redis.call("ZCOUNT", zset, "-inf", "(" .. text)
  local high = low + redis.call("ZCOUNT", zset, text, text) - 1
  while low < high do
    -- The member at the lowest rank was read first.
    local at = math.ceil((low + high) / 2)
    local member = redis.call("ZRANGE", zset, at, at)[1]
    cost = cost + 1 + #member / 4096
    local order = compareTo(member, address)
    if order == 0 then return member, deadline, at end
    if order < 0 then high = at - 1 else low = at end
  end
  return nil, nil, low + 1
end
`,
});

/** `byProbe`: how `locate` finds a message among equal deadlines by writing; nil unless a script has {@link probing}. */
const probes = defineFragment({ lua: "local byProbe = nil" });

/**
 * For a script that removes messages: `locate` then puts a probe, the beginning of the sought member. It sorts right before
 * that one, so its rank leads there: five commands, where the search among 50,000 needs 18.
 *
 * `byProbe(zset, address, deadline, text)`: whether it was found out, and what `locate` returns then.
 *
 * No rollback: the probe is put only where Redis permits to remove it, and behind a removal full memory refuses nothing.
 * Where it is refused, or a foreign member has the same bytes, it is not found out.
 */
export const probing = defineFragment({
  needs: [costs, probes],
  lua: /* lua */ `
local mayProbe = nil
byProbe = function(zset, address, deadline, text)
  if mayProbe == nil then mayProbe = redis.pcall("ZREM", zset, "delayline: nothing") == 0 end
  local beginning = string.char(#address - 8) .. address:sub(9)
  if not mayProbe or redis.pcall("ZADD", zset, "NX", text, beginning) ~= 1 then return false end
  local at = redis.pcall("ZRANK", zset, beginning)
  local found = type(at) == "number" and redis.pcall("ZRANGE", zset, at + 1, at + 1, "WITHSCORES") or at
  redis.call("ZREM", zset, beginning)
  if found.err then return false end
  local member = found[1] or ""
  cost = cost + 1 + #member / 4096
  if tonumber(found[2]) ~= deadline or member:sub(1, #beginning) ~= beginning then return true, nil, nil, at end
  if #member < #beginning + 8 then return false end
  return true, member, deadline, at
end
`,
});

/**
 * Finds messages by address, in O(log N): reads the first member with the deadline and, if that is another message,
 * does a binary search by rank among the equal deadlines. Equal scores sort by the members' bytes, which for ids of one
 * length means by id.
 *
 * `locate(zset, address)`: the member and the deadline of the message with this deadline and id (of 8 or 16 bytes) in a ZSET
 * of members by deadline, or nil if it is not there. If the first member was another one, also its rank, or that of the
 * next message.
 */
export const locate = defineFragment({
  needs: [costs, deadlineOf, probes],
  rarely: [searchEqual],
  lua: /* lua */ `
local function locate(zset, address)
  local deadline = deadlineOf(address)
  if deadline ~= deadline then return nil end
  local text = string.format("%.17g", deadline)
  local member = redis.call("ZRANGEBYSCORE", zset, text, text, "LIMIT", 0, 1)[1]
  cost = cost + 1 + (member and #member or 0) / 4096
  if not member then return nil end
  local length = #address - 8
  local isIt = member:byte(1) == length and #member >= length + 9 and member:sub(2, length + 1) == address:sub(9)
  if isIt then return member, deadline end
  if byProbe then
    local isDone, found, due, rank = byProbe(zset, address, deadline, text)
    if isDone then return found, due, rank end
  end
  return rare().searchEqual(zset, address, member, deadline, text)
end
`,
});

/**
 * `find(element)`: the member and the deadline of the message that an element of the insertion order stands for, or nil
 * if the message is gone.
 */
export const find = defineFragment({
  keys: ["timeouts"],
  needs: [costs, isAddress, locate],
  lua: /* lua */ `
local function find(element)
  if isAddress(element) then return locate(timeouts, element) end
  cost = cost + 1 + #element / 4096
  local score = redis.call("ZSCORE", timeouts, element)
  if score then return element, tonumber(score) end
  return nil
end
`,
});

/**
 * `findNext(element)`: like `find`, but faster for elements that are looked up in the order of the LIST.
 *
 * In the LIST, elements with equal deadlines are usually in the order of their ids, as in the ZSET. So after the first
 * binary search among them, each is found by continuing from the one before.
 */
export const findNext = defineFragment({
  keys: ["timeouts"],
  needs: [compareBytes, compareTo, costs, deadlineOf, find, isAddress, locate],
  lua: /* lua */ `
local sought, rank, candidate = "", nil, nil
local function findNext(element)
  if not isAddress(element) then return find(element) end
  local isBehind = rank and element:sub(1, 8) == sought:sub(1, 8) and compareBytes(sought, 9, element, 9, 16) < 0
  sought = element
  for _ = 1, isBehind and 8 or 0 do
    if not candidate then
      local found = redis.call("ZRANGE", timeouts, rank, rank, "WITHSCORES")
      if tonumber(found[2]) ~= deadlineOf(element) then return nil end
      candidate = found[1]
      cost = cost + 1 + #candidate / 4096
    end
    local order = compareTo(candidate, element)
    if order == 0 then return candidate, deadlineOf(element) end
    if order < 0 then return nil end
    rank, candidate = rank + 1, nil
  end
  local member, deadline, found = locate(timeouts, element)
  rank, candidate = found, member
  return member, deadline
end
`,
});

/**
 * `takeBack(added)`: takes back messages that `putDelayed` has just put; returns whether Redis permits it. If not, they
 * are all there.
 */
export const takeBack = defineFragment({
  keys: ["timeouts", "order"],
  lua: /* lua */ `
local function takeBack(added)
  if #added > 0 and type(redis.pcall("ZREM", timeouts, unpack(added))) == "table" then return false end
  redis.pcall("LTRIM", order, 0, -#added - 1)
  return true
end
`,
});

/**
 * `putDelayed(members, deadlines, elements)`: puts messages into the ZSET, and their elements at the end of the insertion
 * order: all, or none. Returns Redis's error if it refuses; else nil, the members that are new, the positions of those
 * that were there already and stay as they are, and the position of the new one that is due first (nil if none is new).
 * A few thousand at most: Lua's stack holds no more.
 *
 * No rollback: the insertion order comes first. Until a message is in the ZSET, its element points to nothing. If Redis
 * refuses the ZSET, it does so for the first message.
 */
export const putDelayed = defineFragment({
  keys: ["timeouts", "order"],
  lua: /* lua */ `
local function putDelayed(members, deadlines, elements)
  local pushed = redis.pcall("RPUSH", order, unpack(elements))
  if type(pushed) == "table" then return pushed end
  local added, fresh, known, first = {}, {}, {}, nil
  for i, member in ipairs(members) do
    local done = redis.pcall("ZADD", timeouts, "NX", deadlines[i], member)
    if type(done) == "table" then
      redis.pcall("LTRIM", order, 0, -#elements - 1)
      return done
    end
    if done == 1 then
      added[#added + 1], fresh[#fresh + 1] = member, elements[i]
      if not first or deadlines[i] < deadlines[first] then first = i end
    else
      known[#known + 1] = i
    end
  end
  -- Messages that were put before have their elements already.
  if #known > 0 and not redis.pcall("LTRIM", order, 0, -#elements - 1).err then
    for _, element in ipairs(fresh) do redis.call("RPUSH", order, element) end
  end
  return nil, added, known, first
end
`,
});

/**
 * `putOne(member, deadline, element)`: the same for one message, without tables. Returns Redis's error if it refuses; else
 * nil, and whether the message is new.
 */
export const putOne = defineFragment({
  keys: ["timeouts", "order"],
  lua: /* lua */ `
local function putOne(member, deadline, element)
  local done = redis.pcall("RPUSH", order, element)
  if type(done) == "table" then return done end
  done = redis.pcall("ZADD", timeouts, "NX", deadline, member)
  if done == 1 then return nil, true end
  redis.pcall("LTRIM", order, 0, -2)
  if type(done) == "table" then return done end
  return nil, false
end
`,
});

/**
 * `putNew(members, deadlines, elements)`: the same for messages that cannot be there yet, by one command less for each.
 * Returns Redis's error if it refuses.
 */
export const putNew = defineFragment({
  keys: ["timeouts", "order"],
  lua: /* lua */ `
local function putNew(members, deadlines, elements)
  local pushed = redis.pcall("RPUSH", order, unpack(elements))
  if type(pushed) == "table" then return pushed end
  local pairs = {}
  for i, member in ipairs(members) do pairs[2 * i - 1], pairs[2 * i] = deadlines[i], member end
  local added = redis.pcall("ZADD", timeouts, "NX", unpack(pairs))
  if type(added) == "number" then return nil end
  redis.pcall("LTRIM", order, 0, -#elements - 1)
  return added
end
`,
});

/** `keysOf(members)`: the business keys whose index entries point to these messages. Reads only. */
export const keysOf = defineFragment({
  needs: [ownKeys, unpackMember],
  lua: /* lua */ `
local function keysOf(members)
  local keys, ids = {}, {}
  for _, member in ipairs(members) do
    local id, _, key = unpackMember(member)
    if key then
      keys[#keys + 1] = key
      ids[#ids + 1] = id
    end
  end
  return ownKeys(keys, ids)
end
`,
});

/**
 * `dropDelayed(members, keys)`: removes messages from the ZSET, and then these keys from the index. If Redis refuses to
 * remove an entry, it stays and points to nothing, which does no harm.
 */
export const dropDelayed = defineFragment({
  keys: ["timeouts", "businessKeys"],
  lua: /* lua */ `
local function dropDelayed(members, keys)
  redis.call("ZREM", timeouts, unpack(members))
  if #keys > 0 then redis.pcall("HDEL", businessKeys, unpack(keys)) end
end
`,
});
