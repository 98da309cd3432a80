import { defineFragment } from "../fragment.ts";
import { fieldAt } from "./trailer.ts";

/** The most failed attempts that a message carries. */
export const MAX_FAILURES = 10;

/** The most bytes of a failure's reason that are kept. */
export const MAX_REASON_BYTES = 200;

/**
 * `aroundSurplus(trailer)`: the parts of a trailer in front of the failures that have to go for another one, and behind
 * them; nil if its fields are malformed.
 */
const aroundSurplus = defineFragment({
  needs: [fieldAt],
  lua: /* lua */ `
local function aroundSurplus(trailer)
  local starts, ends, at, size = {}, {}, 3, #trailer
  while at <= size do
    -- Each long string that is made would cost more than this whole loop.
    local tag, last = fieldAt(trailer, at)
    if not tag then return nil end
    if tag == 4 then
      starts[#starts + 1] = at
      ends[#ends + 1] = last + 1
    end
    at = last + 1
  end
  local surplus, last = #starts + 1 - ${MAX_FAILURES}, 1
  if surplus < 1 then return trailer, "" end
  -- Usually one goes. A foreign program may have written more.
  while last < surplus and starts[last + 1] == ends[last] do last = last + 1 end
  return trailer:sub(1, starts[1] - 1), trailer:sub(ends[last])
end
`,
});

/**
 * `countFailure(entry, reason, now)`: counts the failed delivery as an attempt, and adds a failure to the entry's
 * trailer. `now` is what `clock()` returned.
 *
 * A failure is a field of the trailer; see `trailer.ts` and `failed-attempt.ts`. A bare key becomes a field, too. The
 * eleventh failure removes the oldest; the other fields stay as they are. A trailer of another version, or with
 * malformed fields, is left alone.
 */
export const countFailure = defineFragment({
  rarely: [aroundSurplus],
  lua: /* lua */ `
local function countFailure(entry, reason, now)
  entry.n = entry.n + 1
  local trailer = entry.t or ""
  local before, behind
  if trailer:byte(1) ~= 255 then
    before, behind = "\\255\\1", trailer ~= "" and struct.pack("<BI4", 1, #trailer) .. trailer or ""
  elseif trailer:byte(2) == 1 then
    before, behind = rare().aroundSurplus(trailer)
  end
  if not before then return end
  local last = math.min(#reason, ${MAX_REASON_BYTES})
  -- Not in the middle of a character, whose bytes but the first are 128 to 191.
  for _ = 1, 3 do
    local next = reason:byte(last + 1)
    if not next or next < 128 or next > 191 then break end
    last = last - 1
  end
  local head = struct.pack("<BI4I8I4", 4, 12 + last, math.floor(now / 1000), entry.n)
  entry.t = before .. behind .. head .. reason:sub(1, last)
end
`,
});

/**
 * `withoutFailures(trailer)`: the trailer as it was before the message's first failed attempt; see `failed-attempt.ts`. A
 * trailer of another version, or with malformed fields, is returned as it is.
 */
export const withoutFailures = defineFragment({
  needs: [fieldAt],
  lua: /* lua */ `
local function withoutFailures(trailer)
  if trailer:byte(1) ~= 255 or trailer:byte(2) ~= 1 then return trailer end
  local kept, tags, hasFailed, at, size = {}, {}, false, 3, #trailer
  while at <= size do
    local tag, last = fieldAt(trailer, at)
    if not tag then return trailer end
    if tag == 4 then
      hasFailed = true
    else
      kept[#kept + 1] = trailer:sub(at, last)
      tags[#tags + 1] = tag
    end
    at = last + 1
  end
  if not hasFailed then return trailer end
  if #kept == 0 then return "" end
  -- Only a key is left: countFailure had turned the bare key into a field.
  if #kept == 1 and tags[1] == 1 then return kept[1]:sub(6) end
  return "\\255\\1" .. table.concat(kept)
end
`,
});

/**
 * Decides whether a message dies, where no process holds its delivery any more, because the consumer has died. A process
 * that holds a delivery decides by `Held.isLast`.
 *
 * `orBury(entry, now, maxAttempts, bury, giveBack)`: counts the failed delivery, and returns `bury(reason)` if the
 * message has had `maxAttempts`, else `giveBack()` for an entry that tells that its consumer died. If `maxAttempts`
 * is nil, no limit is known, and the message lives. `now` is what `clock()` returned.
 */
export const orBury = defineFragment({
  needs: [countFailure],
  lua: /* lua */ `
local function orBury(entry, now, maxAttempts, bury, giveBack)
  local reason = "its consumer died in delivery " .. entry.n + 1
  countFailure(entry, reason, now)
  if maxAttempts and entry.n >= maxAttempts then return bury(reason) end
  entry.d = "1"
  return giveBack()
end
`,
});
