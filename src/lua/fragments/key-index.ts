import { defineFragment } from "../fragment.ts";
import { bytes, idOf } from "./address.ts";
import { locate } from "./locate.ts";
import { keyOf, packMember, unpackMember } from "./member.ts";
import { retriesOf } from "./retry.ts";

/**
 * Entries of the index of business keys, a HASH, key -> entry. An entry is
 * `address(24) | outcome(1) | since(8, big-endian epoch ms)`: the address of the delayed or retrying message that holds
 * the key, the outcome of its offer (a position in `OUTCOMES`; 0 for a retrying message), and when the key was first
 * offered since it was last free. `since` is present from the first replacement on. Foreign programs may have written
 * anything.
 *
 * `addressIn(entry)`: the address, or nil if the entry cannot be one.
 * `pointsTo(entry, id)`: whether the entry, which may be missing, points to the message with this id of 16 bytes.
 * `behindAddress(entry)`: what stays if the message gets another address.
 * `outcomeIn(entry)`: the outcome.
 * `sinceIn(entry)`: when the key was first offered; nil before the first replacement.
 * `packOutcome(outcome, since)`: what follows the address; `since` may be nil.
 */
export const indexEntry = defineFragment({
  needs: [bytes],
  lua: /* lua */ `
local function addressIn(entry)
  if #entry < 25 or entry:byte(1) > 0 then return nil end
  return entry:sub(1, 24)
end
local function pointsTo(entry, id)
  return entry and entry:sub(9, 24) == id
end
local function behindAddress(entry)
  return entry:sub(25)
end
local function outcomeIn(entry)
  return entry:byte(25)
end
local function sinceIn(entry)
  if #entry < 33 then return nil end
  return wholeAt(entry, 26)
end
local function packOutcome(outcome, since)
  if not since then return string.char(outcome) end
  return string.char(outcome) .. struct.pack(">I4I4", math.floor(since / 4294967296), since % 4294967296)
end
`,
});

/**
 * Finds the messages that hold business keys.
 *
 * `resolveEntry(key, entry)`: the member and the deadline of the delayed message that an index entry of this key points
 * to, or nil. `delayedWith(key)`: the member and the deadline of the delayed message with this key, or nil; and the
 * entry of the key.
 * `retriesWith(key, entry)`: the retries of the message that the entry of this key (which may be missing) points to, as
 * `retriesOf` returns them; none if that is not a retrying message with this key. Ask for a delayed message first: then
 * a message that is found there costs nothing more.
 * `isHeld(key, entry)`: whether the entry of this key points to a delayed or retrying message.
 */
export const holderOf = defineFragment({
  keys: ["businessKeys"],
  needs: [indexEntry, keyOf, locate, retriesOf],
  lua: /* lua */ `
local function resolveEntry(key, entry)
  local address = addressIn(entry)
  if not address then return nil end
  local member, deadline = locate(address)
  -- A broken entry may point to another message, so compare the key in the trailer.
  if not member then return nil end
  local trailer = member:sub(math.min(26 + struct.unpack("<I8", member, 18), #member + 1))
  if keyOf(trailer) ~= key then return nil end
  return member, deadline
end
local function delayedWith(key)
  local entry = redis.call("HGET", businessKeys, key)
  if not entry then return nil end
  local member, deadline = resolveEntry(key, entry)
  return member, deadline, entry
end
local function retriesWith(key, entry)
  local address = entry and addressIn(entry)
  local found = address and retriesOf(address) or {}
  if found[1] and keyOf(found[1].t) ~= key then return {} end
  return found
end
local function isHeld(key, entry)
  return resolveEntry(key, entry) or retriesWith(key, entry)[1]
end
`,
});

/**
 * `resolve(id, key)`: the member and the deadline of the delayed message with this address (with an id of 8 or 16 bytes)
 * or, if that is empty, with this business key. If there is none, nil twice, and the retries of the message, as
 * `retriesOf` returns them.
 * `asMember(retry)`: a retry as a member of the ZSET.
 */
export const resolve = defineFragment({
  needs: [holderOf, idOf, locate, packMember, retriesOf],
  lua: /* lua */ `
local function resolve(id, key)
  local member, deadline, entry
  if id ~= "" then member, deadline = locate(id) else member, deadline, entry = delayedWith(key) end
  if member then return member, deadline end
  return nil, nil, id ~= "" and retriesOf(id) or retriesWith(key, entry)
end
local function asMember(retry)
  return packMember(idOf(retry.a), retry.p, retry.t)
end
`,
});

/**
 * A retrying message holds its business key, as a delayed one does: the index points to its address.
 *
 * `heldKeyOf(entry)`: the key that the message of this entry may hold, or nil.
 * `isFreeFor(address, key, entry)`: whether the key, whose entry may be missing, should be made to point to the message
 * with this address: it does not yet, and to no other message that waits.
 * `holdKey(key, address)`: makes the key point to the message with this address, unless another message that waits has
 * it: then that one, which is newer, keeps it.
 * `keysOfRetries(leaving)`: the keys to remove from the index when these retries leave (tables as `retriesOf` returns
 * them): those that point to their messages, unless another group has a retry of the message that stays. Reads only.
 */
export const keyHold = defineFragment({
  keys: ["businessKeys", "retries"],
  needs: [holderOf, idOf],
  lua: /* lua */ `
local function heldKeyOf(entry)
  if #entry.a ~= 24 or entry.a:byte(1) > 0 then return nil end
  return keyOf(entry.t or "")
end
local function isFreeFor(address, key, entry)
  return not entry or addressIn(entry) ~= address and not isHeld(key, entry)
end
local function holdKey(key, address)
  local entry = redis.call("HGET", businessKeys, key)
  if isFreeFor(address, key, entry) then redis.call("HSET", businessKeys, key, address .. packOutcome(0)) end
end
local function keysOfRetries(leaving)
  local keys, ofKeys, isLeaving, own = {}, {}, {}, {}
  for _, one in ipairs(leaving) do
    isLeaving[one.name] = true
    local key = heldKeyOf(one)
    if key then
      keys[#keys + 1] = key
      ofKeys[#keys] = one
    end
  end
  if #keys == 0 then return own end
  local function isLast(address)
    if #groupsWaiting() < 2 then return true end
    for _, group in ipairs(groupsWaiting()) do
      local name = retryName(address, group)
      if not isLeaving[name] and redis.call("ZSCORE", retries, name) then return false end
    end
    return true
  end
  for i, entry in ipairs(redis.call("HMGET", businessKeys, unpack(keys))) do
    if pointsTo(entry, idOf(ofKeys[i].a)) and isLast(ofKeys[i].a) then own[#own + 1] = keys[i] end
  end
  return own
end
`,
});

/** `ownKeys(keys, ids)`: the keys whose entries point to the message with the id at the same position. */
export const ownKeys = defineFragment({
  keys: ["businessKeys"],
  needs: [indexEntry],
  lua: /* lua */ `
local function ownKeys(keys, ids)
  local own = {}
  if #keys == 0 then return own end
  for i, entry in ipairs(redis.call("HMGET", businessKeys, unpack(keys))) do
    if pointsTo(entry, ids[i]) then own[#own + 1] = keys[i] end
  end
  return own
end
`,
});

/**
 * `keysOf(members)`: the business keys whose index entries point to these messages. Reads only.
 * `takeOut(members, keys)`: removes messages from the ZSET, and then these keys from the index. If Redis refuses to
 * remove an entry, it stays and points to nothing, which does no harm.
 */
export const takeOut = defineFragment({
  keys: ["timeouts", "businessKeys"],
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
local function takeOut(members, keys)
  redis.call("ZREM", timeouts, unpack(members))
  if #keys > 0 then redis.pcall("HDEL", businessKeys, unpack(keys)) end
end
`,
});
