import { defineFragment } from "../../fragment.ts";
import { bytes } from "./bytes.ts";

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
