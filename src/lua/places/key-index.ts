import { defineFragment } from "../fragment.ts";
import { idOf } from "../fragments/address.ts";
import { pointsTo } from "../fragments/key-entry.ts";
import { locate } from "./delayed.ts";
import { waitingAt } from "./room.ts";
import { packMember } from "../fragments/member.ts";
import { readTrailer } from "../fragments/trailer.ts";
import { groupsRetrying, retriesOf, retryBytes } from "./retries.ts";

/**
 * `delayedWith(key[, entry])`: the member and the deadline of the delayed message that holds this business key, also if it
 * waits for its turn, or nil twice; the entry of the key, or nil; the address in the entry, or nil if it cannot be one; and
 * whether it waits. `entry`: the entry of the key, if it was read already.
 */
export const delayedWith = defineFragment({
  keys: ["timeouts", "businessKeys"],
  needs: [readTrailer, locate],
  rarely: [waitingAt],
  lua: /* lua */ `
local function delayedWith(key, entry)
  entry = entry or redis.call("HGET", businessKeys, key)
  if not entry then return nil end
  if #entry < 25 or entry:byte(1) > 0 then return nil, nil, entry end
  local address = entry:sub(1, 24)
  local member, deadline = locate(timeouts, address)
  local waits = not member
  if waits then member, deadline = rare().waitingAt(address) end
  if not member then return nil, nil, entry, address end
  -- A broken entry may point to another message, so compare the key in the trailer.
  local trailer = member:sub(math.min(26 + struct.unpack("<I8", member, 18), #member + 1))
  if readTrailer(trailer) ~= key then return nil, nil, entry, address end
  return member, deadline, entry, address, waits
end
`,
});

/**
 * `retriesWith(key, address)`: the retries of the message with the address in the entry of this key (may be missing), as
 * `retriesOf` returns them; none if that is not a retrying message with this key. Ask for a delayed message first: then
 * a message that is found there costs nothing more.
 */
const retriesWith = defineFragment({
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
 * `resolve(id, key[, entry])`: where the message is that has this address (with an id of 8 or 16 bytes) or, if that is empty, this
 * business key: its place, "delayed", "waiting" or "retrying"; its name there, the member or the name of the retry; and when it is
 * due. Of a retrying message these are the first retry's, and the fourth value is all of them, as `retriesOf` returns
 * them. The fifth is the entry of the key, which begins with the address; nil for an `id`. Nil if it is in neither. `entry`:
 * the entry of the key, if it was read already.
 */
export const resolve = defineFragment({
  keys: ["timeouts"],
  needs: [delayedWith, locate],
  rarely: [retriesOf, retriesWith, waitingAt],
  lua: /* lua */ `
local function resolve(id, key, entry)
  local member, deadline, address, waits
  if id ~= "" then member, deadline = locate(timeouts, id) else member, deadline, entry, address, waits = delayedWith(key, entry) end
  if not member and id ~= "" then
    member, deadline = rare().waitingAt(id)
    waits = true
  end
  if member then return waits and "waiting" or "delayed", member, deadline, nil, entry end
  if id == "" and not address then return nil end
  local all = id ~= "" and rare().retriesOf(id) or rare().retriesWith(key, address)
  if all[1] then return "retrying", all[1].name, all[1].due, all, entry end
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
