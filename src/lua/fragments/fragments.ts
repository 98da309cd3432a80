/**
 * Lua functions that several scripts share. `defineScript` writes them in front of a script's body,
 * after its keys, which they read under the names `timeouts`, `order` and `compacted`.
 *
 * Others may have written any bytes under our keys, and Redis rolls nothing back when a script breaks
 * off. So no function here raises an error for bytes that it cannot read: they lead to nothing.
 *
 * Bytes are compared as numbers. Lua's `<` on strings is strcoll(3), and Redis takes the collation
 * from its environment.
 */

/**
 * `replied(score)`: a deadline as a reply can carry it. A Lua number becomes an integer of 64 bits in
 * a reply: fractions are cut off, and what is larger wraps. Nobody offers such a deadline, but a score
 * is any double. `asDeadline` reads it.
 */
export const replied = /* lua */ `
local function replied(score)
  if score % 1 == 0 and score >= 0 and score <= 9007199254740991 then return score end
  return string.format("%.17g", score)
end`;

/** `clock()`: the server's time in microseconds. Once per script: Redis 7.0 does not freeze it. */
export const clock = /* lua */ `
local function clock()
  local time = redis.call("TIME")
  return time[1] * 1000000 + time[2]
end`;

/**
 * `deadlineAfter(now, delay)`: the deadline of a message that is offered now, both in milliseconds.
 * Rounded up, since nothing is ever early; but a delay of 0 is due at once.
 */
export const deadlineAfter = /* lua */ `
local function deadlineAfter(now, delay)
  return tonumber(delay) == 0 and math.floor(now) or math.ceil(now + delay)
end`;

/**
 * `unpackMember(member)`: the id, the payload and the business key (or nil) of a ZSET member, or nil
 * if its layout is unknown. `message.ts` has the rule, and decides in the same way.
 */
export const unpackMember = /* lua */ `
local function unpackMember(member)
  local size = #member
  if size < 9 then return nil end
  local head = 9 + member:byte(1)
  local length = size >= head and struct.unpack("<I8", member, head - 7) or math.huge
  if head + length == size then return member:sub(2, head - 8), member:sub(head + 1) end
  -- Redisson before 3.21.1: an 8-byte random number, the length, the payload.
  if size >= 16 and struct.unpack("<I8", member, 9) == size - 16 then
    return member:sub(1, 8), member:sub(17)
  end
  if head + length < size then
    return member:sub(2, head - 8), member:sub(head + 1, head + length), member:sub(head + length + 1)
  end
  return nil
end`;

/**
 * Elements of the order LIST. Ours are addresses: deadline(8) | id(16), both big-endian. Java's are
 * whole members, and so are ours in a queue with `interop: "redisson"`.
 *
 * `packAddress(deadline, member)`: the address of a member of ours.
 * `wholeAt(bytes, from)`: the whole number in eight bytes, big-endian.
 * `deadlineOf(address)`: its deadline, or the score of a member that nobody could have offered; see
 * `packAddress` in `message.ts`.
 * `isAddress(element)`: an address begins with 0 (deadlines are below 2^56), and so does the order
 * stamp in it. A member begins with its id's length; one of before 3.21.1 may begin with anything,
 * but where it has 24 bytes its ninth is 8.
 * `compareBytes(a, i, b, j, count)`: negative, 0 or positive, as `count` bytes of `a` from `i` on are
 * below, equal to or above those of `b` from `j` on.
 */
export const addresses = /* lua */ `
local function packAddress(deadline, member)
  return struct.pack(">I4I4", math.floor(deadline / 4294967296), deadline % 4294967296) .. member:sub(2, 17)
end
local function isAddress(element)
  return #element == 24 and element:byte(1) == 0 and element:byte(9) == 0
end
local function wholeAt(bytes, from)
  local high, low = struct.unpack(">I4I4", bytes, from)
  return high * 4294967296 + low
end
local function deadlineOf(address)
  if address:byte(1) > 0 then return (struct.unpack(">d", address)) end
  return wholeAt(address, 1)
end
local function compareBytes(a, i, b, j, count)
  for k = 0, count - 4, 4 do
    local x, y = struct.unpack(">I4", a, i + k), struct.unpack(">I4", b, j + k)
    if x ~= y then return x - y end
  end
  return 0
end`;

/**
 * Find by address, in O(log N): the first member with the deadline; if that is another one, a binary
 * search by rank among the equal deadlines, since ties sort by member bytes, which for ids of one
 * length is by id.
 *
 * `compareTo(member, address)`: negative, 0 or positive, as the message with the address stands
 * before, at or behind a member of its deadline.
 * `locate(address)`: the member and the deadline of the message with this deadline and id (of 8 or 16
 * bytes), or nil if it is gone; and its rank, or that of the next one, if it came to a binary search.
 * `find(element)`: the same for an element of the order LIST.
 * `spent()`: what both have cost so far: 1 for each look into the ZSET, and 1 for each 4 KB that it read.
 * They require {@link addresses}.
 */
export const find = /* lua */ `
local cost = 0
local function spent()
  return cost
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
local function find(element)
  if isAddress(element) then return locate(element) end
  cost = cost + 1 + #element / 4096
  local score = redis.call("ZSCORE", timeouts, element)
  if score then return element, tonumber(score) end
  return nil
end`;

/**
 * `findNext(element)`: as `find`, for elements in the order of the LIST.
 *
 * Those of one deadline mostly stand in the order of their ids there, as in the ZSET. So after the
 * first binary search among them each is found by going on from the one before. Requires
 * {@link addresses} and {@link find}.
 */
export const findNext = /* lua */ `
local last, rank, candidate = "", nil, nil
local function findNext(element)
  if not isAddress(element) then return find(element) end
  local isBehind = rank and element:sub(1, 8) == last:sub(1, 8) and compareBytes(last, 9, element, 9, 16) < 0
  last = element
  for _ = 1, isBehind and 8 or 0 do
    if not candidate then
      local found = redis.call("ZRANGE", timeouts, rank, rank, "WITHSCORES")
      if tonumber(found[2]) ~= deadlineOf(element) then return nil end
      candidate = found[1]
      cost = cost + 1 + #candidate / 4096
    end
    local order = compareTo(candidate, element)
    if order == 0 then return candidate end
    if order < 0 then return nil end
    rank, candidate = rank + 1, nil
  end
  local member, _, found = locate(element)
  rank, candidate = found, member
  return member
end`;

/**
 * `deadBelow(head, deadline)`: a function that tells whether an element of the order LIST is surely
 * dead, given the head of the ZSET.
 *
 * Messages leave in the order (deadline, member), so an address below the head's has left: one
 * comparison, whatever the size of the queue. An address above it may be that of a message that was
 * cancelled: it counts as alive here. A member that Java wrote is looked up.
 * Requires {@link addresses}.
 */
export const deadBelow = /* lua */ `
local function deadBelow(head, headDeadline)
  local comparable = head:byte(1) == 16 and #head >= 25
  return function(element)
    if not isAddress(element) then return not redis.call("ZSCORE", timeouts, element) end
    local deadline = deadlineOf(element)
    if deadline ~= headDeadline then return deadline < headDeadline end
    return comparable and compareBytes(element, 9, head, 2, 16) < 0
  end
end`;

/**
 * `view(from, to)`: elements `from` to `to` (from 0, inclusive) of the insertion order, which is the
 * compacted list and behind it the LIST.
 */
export const view = /* lua */ `
local front = redis.call("LLEN", compacted)
local function view(from, to)
  local elements = {}
  if to < from then return elements end
  if from < front then elements = redis.call("LRANGE", compacted, from, to) end
  if to >= front then
    for _, element in ipairs(redis.call("LRANGE", order, math.max(from - front, 0), to - front)) do
      elements[#elements + 1] = element
    end
  end
  return elements
end`;

/**
 * The index of business keys: a HASH, key -> entry. An entry begins with the address of the pending
 * message that has the key.
 *
 * `ownKeys(keys, ids)`: those of the keys that lead to the message with the id at the same place.
 */
export const ownKeys = /* lua */ `
local function ownKeys(keys, ids)
  local own = {}
  if #keys == 0 then return own end
  for i, entry in ipairs(redis.call("HMGET", index, unpack(keys))) do
    if entry and entry:sub(9, 24) == ids[i] then own[#own + 1] = keys[i] end
  end
  return own
end`;

/**
 * Messages by their keys; contains {@link ownKeys}.
 *
 * `entryLeads(key, entry)`: the member and the deadline of the message that an entry leads to, or nil.
 * `delayedWith(key)`: the member and the deadline of the pending message with this key, and the
 * entry; or nil. Both require {@link addresses} and {@link find}.
 * `takeOut(members)`: removes messages from the ZSET, and then from the index. An entry that may not
 * be removed does no harm: it leads to nothing. Requires {@link unpackMember}.
 */
export const keyIndex = /* lua */ `${ownKeys}
local function entryLeads(key, entry)
  if #entry < 25 or entry:byte(1) > 0 then return nil end
  local member, deadline = locate(entry:sub(1, 24))
  -- Behind the payload a message has its key. An entry that is broken may lead to another one.
  if not member or member:sub(math.min(26 + struct.unpack("<I8", member, 18), #member + 1)) ~= key then return nil end
  return member, deadline
end
local function delayedWith(key)
  local entry = redis.call("HGET", index, key)
  if not entry then return nil end
  local member, deadline = entryLeads(key, entry)
  if not member then return nil end
  return member, deadline, entry
end
local function takeOut(members)
  local keys, ids = {}, {}
  for _, member in ipairs(members) do
    local id, _, key = unpackMember(member)
    if key then
      keys[#keys + 1] = key
      ids[#ids + 1] = id
    end
  end
  local own = ownKeys(keys, ids)
  redis.call("ZREM", timeouts, unpack(members))
  if #own > 0 then redis.pcall("HDEL", index, unpack(own)) end
end`;
