import { defineFragment } from "../fragment.ts";
import { wholeAt } from "./address.ts";

/*
 * Entries of the index of business keys, a HASH, key -> entry. An entry is
 * `address(24) | outcome(1) | since(8) | cap(8) | marks`, instants as big-endian epoch ms: the address of the delayed or retrying
 * message that holds the key, the outcome of its offer (a position in `OUTCOMES`; 0 for a retrying message), when the key was
 * first offered since it was last free, and the latest deadline that a replacement may have. `since` is present from the first
 * replacement on, and `cap` from the first offer with a `maxWait` on. Marks are of offers that collect, see `collect.ts`. Foreign programs may
 * have written anything, and older releases leave `cap` and marks out.
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
 * `capIn(entry)`: the latest deadline that a replacement may have; nil without one.
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
local function capIn(entry)
  if #entry < 41 then return nil end
  return wholeAt(entry, 34)
end
`,
});

/** `packOutcome(outcome, since, cap)`: what follows the address in an entry; `cap` may be nil, and then `since` too. */
export const packOutcome = defineFragment({
  lua: /* lua */ `
local function packOutcome(outcome, since, cap)
  if not since then return string.char(outcome) end
  local entry = string.char(outcome) .. struct.pack(">I4I4", math.floor(since / 4294967296), since % 4294967296)
  return cap and entry .. struct.pack(">I4I4", math.floor(cap / 4294967296), cap % 4294967296) or entry
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
