import { defineFragment } from "../../fragment.ts";
import { keyOf } from "../message/key-of.ts";
import { indexEntry } from "../message/index-entry.ts";
import { locate } from "./locate.ts";

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
