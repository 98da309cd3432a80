import { defineFragment } from "../fragment.ts";
import { idOf, wholeAt } from "../fragments/address.ts";
import { locate } from "./delayed.ts";
import { packMember, unpackMember } from "../fragments/member.ts";
import { readTrailer } from "../fragments/trailer.ts";
import { groupsRetrying, retriesOf, retryBytes } from "./retries.ts";

/*
 * Entries of the index of business keys, a HASH, key -> entry. An entry is
 * `address(24) | outcome(1) | since(8, big-endian epoch ms)`: the address of the delayed or retrying message that holds
 * the key, the outcome of its offer (a position in `OUTCOMES`; 0 for a retrying message), and when the key was first
 * offered since it was last free. `since` is present from the first replacement on. Foreign programs may have written
 * anything.
 */

/** `pointsTo(entry, id)`: whether an entry, which may be missing, points to the message with this id of 16 bytes. */
export const pointsTo = defineFragment({
  lua: /* lua */ `
local function pointsTo(entry, id)
  return entry and entry:sub(9, 24) == id
end
`,
});

/** `behindAddress(entry)`: what stays of an entry if the message gets another address. */
export const behindAddress = defineFragment({
  lua: /* lua */ `
local function behindAddress(entry)
  return entry:sub(25)
end
`,
});

/**
 * What follows the address in an entry.
 *
 * `outcomeIn(entry)`: the outcome.
 * `sinceIn(entry)`: when the key was first offered; nil before the first replacement.
 */
export const outcomeIn = defineFragment({
  needs: [wholeAt],
  lua: /* lua */ `
local function outcomeIn(entry)
  return entry:byte(25)
end
local function sinceIn(entry)
  if #entry < 33 then return nil end
  return wholeAt(entry, 26)
end
`,
});

/** `packOutcome(outcome, since)`: what follows the address in an entry; `since` may be nil. */
export const packOutcome = defineFragment({
  lua: /* lua */ `
local function packOutcome(outcome, since)
  if not since then return string.char(outcome) end
  return string.char(outcome) .. struct.pack(">I4I4", math.floor(since / 4294967296), since % 4294967296)
end
`,
});

/**
 * `delayedWith(key[, entry])`: the member and the deadline of the delayed message that holds this business key, or nil
 * twice; the entry of the key, or nil; and the address in the entry, or nil if it cannot be one. `entry`: the entry of the
 * key, if it was read already.
 */
export const delayedWith = defineFragment({
  keys: ["businessKeys"],
  needs: [readTrailer, locate],
  lua: /* lua */ `
local function delayedWith(key, entry)
  entry = entry or redis.call("HGET", businessKeys, key)
  if not entry then return nil end
  if #entry < 25 or entry:byte(1) > 0 then return nil, nil, entry end
  local address = entry:sub(1, 24)
  local member, deadline = locate(address)
  if not member then return nil, nil, entry, address end
  -- A broken entry may point to another message, so compare the key in the trailer.
  local trailer = member:sub(math.min(26 + struct.unpack("<I8", member, 18), #member + 1))
  if readTrailer(trailer) ~= key then return nil, nil, entry, address end
  return member, deadline, entry, address
end
`,
});

/**
 * `retriesWith(key, address)`: the retries of the message with the address in the entry of this key (may be missing), as
 * `retriesOf` returns them; none if that is not a retrying message with this key. Ask for a delayed message first: then
 * a message that is found there costs nothing more.
 */
export const retriesWith = defineFragment({
  needs: [readTrailer, retriesOf],
  lua: /* lua */ `
local function retriesWith(key, address)
  local found = address and retriesOf(address) or {}
  if found[1] and readTrailer(found[1].t) ~= key then return {} end
  return found
end
`,
});

/** `isHeld(key, entry)`: whether the entry of this key points to a delayed or retrying message. */
export const isHeld = defineFragment({
  needs: [delayedWith, retriesWith],
  lua: /* lua */ `
local function isHeld(key, entry)
  local member, _, _, address = delayedWith(key, entry)
  return member or retriesWith(key, address)[1]
end
`,
});

/**
 * `resolve(id, key)`: where the message is that has this address (with an id of 8 or 16 bytes) or, if that is empty, this
 * business key: its place, "delayed" or "retrying"; its name there, which is a member of the place's ZSET; and when it is
 * due. Of a retrying message these are the first retry's, and the fourth value is all of them, as `retriesOf` returns
 * them. Nil if it is in neither.
 */
export const resolve = defineFragment({
  needs: [delayedWith, locate],
  rarely: [retriesOf, retriesWith],
  lua: /* lua */ `
local function resolve(id, key)
  local member, deadline, address, _
  if id ~= "" then member, deadline = locate(id) else member, deadline, _, address = delayedWith(key) end
  if member then return "delayed", member, deadline end
  local all = id ~= "" and rare().retriesOf(id) or rare().retriesWith(key, address)
  if all[1] then return "retrying", all[1].name, all[1].due, all end
end
`,
});

/** `asMember(retry)`: a retry as a member of the ZSET. */
export const asMember = defineFragment({
  needs: [idOf, packMember],
  lua: /* lua */ `
local function asMember(retry)
  return packMember(idOf(retry.a), retry.p, retry.t)
end
`,
});

/*
 * A retrying message holds its business key, as a delayed one does: the index points to its address.
 */

/** `heldKeyOf(entry)`: the key that the message of this entry may hold, or nil. */
export const heldKeyOf = defineFragment({
  needs: [readTrailer],
  lua: /* lua */ `
local function heldKeyOf(entry)
  if #entry.a ~= 24 or entry.a:byte(1) > 0 then return nil end
  return (readTrailer(entry.t or ""))
end
`,
});

/**
 * `isFreeFor(address, key, entry)`: whether the key, whose entry may be missing, should be made to point to the message
 * with this address: it does not yet, and to no other message that waits.
 */
export const isFreeFor = defineFragment({
  needs: [isHeld],
  lua: /* lua */ `
local function isFreeFor(address, key, entry)
  return not entry or (#entry < 25 or entry:sub(1, 24) ~= address) and not isHeld(key, entry)
end
`,
});

/**
 * `holdKey(key, address)`: makes the key point to the message with this address, unless another message that waits has
 * it: then that one, which is newer, keeps it.
 */
export const holdKey = defineFragment({
  keys: ["businessKeys"],
  rarely: [isFreeFor],
  lua: /* lua */ `
local function holdKey(key, address)
  local entry = redis.call("HGET", businessKeys, key)
  if entry and not rare().isFreeFor(address, key, entry) then return end
  redis.call("HSET", businessKeys, key, address .. "\\0")
end
`,
});

/**
 * `keysOfRetries(leaving)`: the keys to remove from the index when these retries leave (tables as `retriesOf` returns
 * them): those that point to their messages, unless another group has a retry of the message that stays. Reads only.
 */
export const keysOfRetries = defineFragment({
  keys: ["businessKeys", "retries"],
  needs: [groupsRetrying, heldKeyOf, idOf, pointsTo, retryBytes],
  lua: /* lua */ `
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
    if #groupsRetrying() < 2 then return true end
    for _, group in ipairs(groupsRetrying()) do
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
  lua: /* lua */ `
local function ownKeys(keys, ids)
  local own = {}
  if #keys == 0 then return own end
  for i, entry in ipairs(redis.call("HMGET", businessKeys, unpack(keys))) do
    if entry and entry:sub(9, 24) == ids[i] then own[#own + 1] = keys[i] end
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
