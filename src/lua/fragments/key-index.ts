import { defineFragment } from "../fragment.ts";
import { bytes } from "./address.ts";
import { locate } from "./locate.ts";
import { keyOf, unpackMember } from "./member.ts";

/**
 * Entries of the index of business keys, a HASH, key -> entry. An entry is
 * `address(24) | outcome(1) | since(8, big-endian epoch ms)`: the address of the delayed message with the key, the
 * outcome of its offer (a position in `OUTCOMES`), and when the key was first offered since it was last free. `since`
 * is present from the first replacement on. Foreign programs may have written anything.
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
 * Finds delayed messages by their business keys.
 *
 * `resolveEntry(key, entry)`: the member and the deadline of the message that an index entry of this key points to, or
 * nil. `delayedWith(key)`: the member and the deadline of the delayed message with this key, and its entry; or nil.
 */
export const delayedWith = defineFragment({
  keys: ["businessKeys"],
  needs: [indexEntry, keyOf, locate],
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
  if not member then return nil end
  return member, deadline, entry
end
`,
});

/**
 * `resolve(id, key)`: the member and the deadline of the delayed message with this address (with an id of 8 or 16 bytes)
 * or, if that is empty, with this business key; or nil.
 */
export const resolve = defineFragment({
  needs: [delayedWith, locate],
  lua: /* lua */ `
local function resolve(id, key)
  if id ~= "" then return locate(id) end
  return delayedWith(key)
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
