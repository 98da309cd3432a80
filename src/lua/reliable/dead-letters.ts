import { defineFragment } from "../fragment.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { deadlineAfter } from "../fragments/deadline.ts";
import { earliestDue } from "../places/due.ts";
import { letter, unpackLetter, type Letter } from "../places/dead.ts";
import { readTrailer } from "../fragments/trailer.ts";
import { keyTaken } from "../places/once.ts";
import { putRetry, tryRetries } from "../places/retry-moves.ts";
import {
  asArray,
  asBuffer,
  asBuffers,
  asFlag,
  asNumber,
  asRow,
  asRows,
  asText,
  type RawReply,
} from "../reply.ts";
import { defineScript } from "../script.ts";
import { may } from "../fragments/may.ts";
import { wakeUp } from "../fragments/wake-up.ts";

/** How far a reader of the dead letters has come. */
export interface LetterCursor {
  /** The id of the letter that was read last; empty at the beginning. */
  readonly after: string;
  /** The id of the letter that was the newest at the beginning, where reading ends; empty at the beginning. */
  readonly last: string;
}

/** The cursor at the beginning. */
export const FIRST_LETTERS: LetterCursor = { after: "", last: "" };

/**
 * `eachLetter(after, last, limit, maxBytes, visit)`: calls `visit(letter, entryId, fields)` for the letters behind
 * `after`, oldest first, up to `limit` letters and about `maxBytes`. Returns the two values of the next
 * {@link LetterCursor}, or false after the last letter. {@link asLetterCursor} reads them.
 *
 * Reading ends at the letter that was the newest at the beginning. Otherwise a redrive might never end, since messages
 * that it puts back may die again before it ends.
 */
const eachLetter = defineFragment({
  keys: ["dead"],
  needs: [letter],
  lua: /* lua */ `
local function eachLetter(after, last, limit, maxBytes, visit)
  if last == "" then
    local newest = redis.call("XREVRANGE", dead, "+", "-", "COUNT", 1)[1]
    if not newest then return false end
    last = newest[1]
  end
  local seen, size = 0, 0
  while seen < limit and size < maxBytes do
    -- Letters may be large. So read a few at a time: as many as probably fit.
    local room = seen == 0 and 2 or math.ceil((maxBytes - size) * seen / size)
    local count = math.min(10, limit - seen, room)
    local found = redis.call("XRANGE", dead, after == "" and "-" or "(" .. after, last, "COUNT", count)
    for _, entry in ipairs(found) do
      local fields = entry[2]
      for i = 1, #fields do size = size + #fields[i] end
      visit(letterOf(entry[1], fields), entry[1], fields)
      after = entry[1]
    end
    seen = seen + #found
    -- At the last letter do not ask for more: Redis refuses a range behind the greatest of all ids.
    if #found < count or after == last then return false end
  end
  return { after, last }
end
`,
});

/** Reads what `eachLetter` returned: the next cursor, or undefined at the end. */
function asLetterCursor(raw: RawReply | undefined): LetterCursor | undefined {
  return Array.isArray(raw) ? asRow(raw, { after: asText, last: asText }) : undefined;
}

/** Some dead letters. */
export interface DeadPage {
  readonly letters: readonly Letter[];
  /** Where the next page begins; undefined after the last page. */
  readonly next: LetterCursor | undefined;
}

/** Returns up to `limit` dead letters and about `maxBytes` behind `after`, oldest first. */
export const deadPage = defineScript({
  name: "dead-page",
  keys: ["dead"],
  args: ["after", "last", "limit", "maxBytes"],
  needs: [eachLetter],
  lua: /* lua */ `
local letters = {}
local cursor = eachLetter(after, last, tonumber(limit), tonumber(maxBytes), function(_, entryId, fields)
  letters[#letters + 1] = entryId
  letters[#letters + 1] = fields
end)
return { cursor, letters }
`,
  reply: asDeadPage,
});

/** Reads a reply of a cursor and a list of entries, each with its id and fields. */
function asDeadPage(raw: RawReply | undefined): DeadPage {
  const { next, letters } = asRow(raw, {
    next: asLetterCursor,
    letters: (rows) => asRows(rows, { entryId: asText, fields: asBuffers }),
  });
  return { next, letters: letters.map(({ entryId, fields }) => unpackLetter(entryId, fields)) };
}

/**
 * Returns the dead letters of one message among those behind `after`: with the address `wanted`, or with the business
 * key `key`; the other argument is empty. Looks at up to `limit` letters and about `maxBytes`.
 */
export const findDead = defineScript({
  name: "find-dead",
  keys: ["dead"],
  args: ["wanted", "key", "after", "last", "limit", "maxBytes"],
  needs: [eachLetter, readTrailer],
  lua: /* lua */ `
local letters = {}
local cursor = eachLetter(after, last, tonumber(limit), tonumber(maxBytes), function(letter, entryId, fields)
  if letter.a ~= wanted and (key == "" or readTrailer(letter.t or "") ~= key) then return end
  letters[#letters + 1] = entryId
  letters[#letters + 1] = fields
end)
return { cursor, letters }
`,
  reply: asDeadPage,
});

/** A dead letter without its payload. */
export interface LetterHead {
  readonly entryId: string;
  /** Whether it can be redriven; see the fragment `letter`. */
  readonly isReadable: boolean;
  readonly address: Buffer;
  /** The group that failed to handle it; empty if nothing can be read. */
  readonly group: string;
  /** The first 1,000 bytes of the reason. */
  readonly reason: string;
  readonly key: string | undefined;
  /** The size of the payload (bytes). */
  readonly size: number;
}

/** Some dead letters without their payloads. */
export interface HeadPage {
  readonly heads: readonly LetterHead[];
  /** Where the next page begins; undefined after the last page. */
  readonly next: LetterCursor | undefined;
}

/** Returns the heads of up to `limit` dead letters behind `after`, oldest first. Looks at about `maxBytes`. */
export const deadHeads = defineScript({
  name: "dead-heads",
  keys: ["dead"],
  args: ["after", "last", "limit", "maxBytes"],
  needs: [eachLetter, readTrailer],
  lua: /* lua */ `
local heads = {}
local cursor = eachLetter(after, last, tonumber(limit), tonumber(maxBytes), function(letter, entryId)
  local isReadable = letter.p and 1 or 0
  local reason, key = (letter.r or ""):sub(1, 1000), readTrailer(letter.t or "") or ""
  for _, value in ipairs({ entryId, isReadable, letter.a, letter.g or "", reason, key, #(letter.p or "") }) do
    heads[#heads + 1] = value
  end
end)
return { cursor, heads }
`,
  reply: (raw): HeadPage =>
    asRow(raw, {
      next: asLetterCursor,
      heads: (rows) =>
        asRows(rows, {
          entryId: asText,
          isReadable: asFlag,
          address: asBuffer,
          group: asText,
          reason: asText,
          key: (text) => asText(text) || undefined,
          size: asNumber,
        }),
    }),
});

/**
 * `redriveAll(choose, delay)`: makes messages retry in `delay` milliseconds, as if they had never been delivered:
 * `choose()` returns their letters, each with its entry. Returns Redis's error if it refused, how many were redriven, and
 * what `clock()` returned. A message that was offered with `once` stays dead while another one has its key.
 *
 * No rollback: everything that may be refused is tried before the first letter is touched, and each retry is added
 * before its letter is removed. At worst there are both, and the message is delivered once more.
 */
const redriving = defineFragment({
  keys: ["dead"],
  needs: [clock, deadlineAfter, earliestDue, may, putRetry, tryRetries, wakeUp],
  rarely: [keyTaken],
  lua: /* lua */ `
local function redriveAll(choose, delay)
  local now = clock()
  local due = deadlineAfter(now / 1000, delay)
  local earliest = earliestDue() or math.huge
  -- A retry needs no more memory than its letter.
  may("XDEL", dead)
  local refusal = tryRetries()
  if refusal then return refusal end
  local chosen = choose()
  refusal = #chosen > 0 and wakeUp(due, earliest)
  if refusal then return refusal end
  local count = 0
  for _, one in ipairs(chosen) do
    local letter, trailer = one[1], one[1].t or ""
    local isOnce = trailer:byte(3) == 10 and trailer:byte(1) == 255
    if not isOnce or not rare().isKeyTaken(letter.a, trailer, now / 1000) then
      letter.n = 0
      local done = putRetry(letter, letter.g, due, trailer == "")
      if type(done) == "table" then return done end
      redis.call("XDEL", dead, one[2])
      count = count + 1
    end
  end
  return nil, count, now
end
`,
});

/**
 * Makes dead messages retry: each becomes a retry of its group, due in `delay` milliseconds, as if it had never been
 * delivered. `wanted` is the address of a message, or empty for all. Unreadable letters stay.
 *
 * Looks at up to `limit` letters and about `maxBytes` behind `after`. Returns how many were redriven, and the next
 * cursor.
 *
 * See `redriveAll` for what a refused command leaves.
 */
export const redrive = defineScript({
  name: "redrive",
  keys: ["dead"],
  args: ["channel", "wanted", "after", "last", "limit", "maxBytes", "delay"],
  needs: [eachLetter, redriving],
  lua: /* lua */ `
local cursor = false
local refusal, count, now = redriveAll(function()
  local chosen = {}
  cursor = eachLetter(after, last, tonumber(limit), tonumber(maxBytes), function(letter, entryId)
    if not letter.p or wanted ~= "" and letter.a ~= wanted then return end
    chosen[#chosen + 1] = { letter, entryId }
  end)
  return chosen
end, delay)
return refusal or { count, cursor, now }
`,
  reply: (raw) => asRow(raw, { redriven: asNumber, next: asLetterCursor, serverTime: asInstant }),
});

/** Makes the messages of these letters retry, as {@link redrive} does; returns how many. O(log N) for each. */
export const redriveLetters = defineScript({
  name: "redrive-letters",
  keys: ["dead"],
  args: ["channel", "delay"],
  each: ["entry"],
  needs: [letter, redriving],
  lua: /* lua */ `
local refusal, count = redriveAll(function()
  local chosen, seen = {}, {}
  for each row do
    local found = not seen[entry] and redis.call("XRANGE", dead, entry, entry)[1]
    seen[entry] = true
    local letter = found and letterOf(entry, found[2])
    if letter and letter.p then chosen[#chosen + 1] = { letter, entry } end
  end
  return chosen
end, delay)
return refusal or count
`,
  reply: asNumber,
});

/** Removes these letters; returns how many there were. O(1) for each. */
export const removeLetters = defineScript({
  name: "remove-letters",
  keys: ["dead"],
  args: [],
  each: ["entry"],
  lua: /* lua */ `
local removed = 0
for each row do removed = removed + redis.call("XDEL", dead, entry) end
return removed
`,
  reply: asNumber,
});

/**
 * Removes the dead letters of the message with the address `wanted`: one for each group that failed to handle it.
 *
 * Looks at up to `limit` letters and about `maxBytes` behind `after`. Returns how many were removed, and the next
 * cursor.
 */
export const removeDead = defineScript({
  name: "remove-dead",
  keys: ["dead"],
  args: ["wanted", "after", "last", "limit", "maxBytes"],
  needs: [eachLetter],
  lua: /* lua */ `
local removed = 0
local cursor = eachLetter(after, last, tonumber(limit), tonumber(maxBytes), function(letter, entryId)
  if letter.a == wanted then removed = removed + redis.call("XDEL", dead, entryId) end
end)
return { removed, cursor }
`,
  reply: (raw) => {
    const [removed, next] = asArray(raw);
    return { removed: asNumber(removed), next: asLetterCursor(next) };
  },
});

/** Removes all dead letters; returns how many. Redis frees their memory in the background. */
export const clearDead = defineScript({
  name: "clear-dead",
  keys: ["dead"],
  args: [],
  lua: /* lua */ `
local count = redis.call("XLEN", dead)
redis.call("UNLINK", dead)
return count
`,
  reply: asNumber,
});
