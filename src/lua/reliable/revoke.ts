import { defineFragment, type Fragment } from "../fragment.ts";
import { deadlineOf } from "../fragments/address.ts";
import { may } from "../fragments/may.ts";
import { consumersOf, groupsOf, isAlive } from "../fragments/stream-info.ts";
import { readTrailer } from "../fragments/trailer.ts";
import { claims } from "../places/claims.ts";
import { letter } from "../places/dead.ts";
import { keysOf } from "../places/delayed.ts";
import { keysOfRetries, resolve } from "../places/key-index.ts";
import { dropOnce } from "../places/once.ts";
import { leaving } from "../places/leaving.ts";
import { turnBytes } from "../places/room.ts";
import { entryOf, readEntry } from "../places/stream.ts";
import { freeing } from "../places/turns.ts";
import {
  asArray,
  asBuffer,
  asFlag,
  asFlags,
  asNumber,
  asRow,
  asRows,
  asText,
  orNothing,
  type RawReply,
} from "../reply.ts";
import { defineScript } from "../script.ts";

/*
 * How a message is found wherever it is, without an index of what is ready: a stream grows at its end only. So who has
 * passed an entry by knows that nothing can appear behind it. A pass over the stream and the dead letters in pages,
 * `seekStream` and `seekDead`, and one last script that looks at what came since, at the delayed messages and at the
 * retries, are exact: what that script does not find is nowhere at that instant.
 *
 * A message that runs needs no mark when it is revoked: its entry is acknowledged and deleted, and every settlement asks
 * whether it is in flight.
 */

/** Where a message is, the furthest first; "gone": nowhere; "handled": nowhere, and Redis remembers that it was handled. */
export const STAGES = [
  "running",
  "retrying",
  "ready",
  "waiting",
  "delayed",
  "dead",
  "handled",
  "gone",
] as const;

/** A place in which a message was found. */
export interface FoundPlace {
  readonly stage: Exclude<(typeof STAGES)[number], "handled" | "gone">;
  readonly address: Buffer;
  /** The group that it is for there; undefined for all groups. */
  readonly group: string | undefined;
  /** How many deliveries were made, including the one that runs. */
  readonly attempts: number;
  /** Its entry in the stream; undefined if it is not there. */
  readonly entryId: string | undefined;
}

/** How far a pass has come in the stream, and in the dead letters: the ids read last; empty at the beginning. */
export interface LookArgs {
  readonly after: string;
  readonly afterDead: string;
  /** Whether no pass has been made (1 or 0). */
  readonly isFirst: number;
}

/**
 * `eachEntry(key, after, limit, maxBytes, visit)`: calls `visit(id, fields)` for the entries of a stream behind `after`, up
 * to `limit` and about `maxBytes`, until it returns true. Returns the id that was read last, and whether there may be more.
 */
const eachEntry = defineFragment({
  lua: /* lua */ `
local function eachEntry(key, after, limit, maxBytes, visit)
  local seen, size = 0, 0
  while seen < limit and size < maxBytes do
    -- Redis refuses a range behind the greatest of all ids.
    if after == "18446744073709551615-18446744073709551615" then return after, false end
    -- Entries may be large. So read a few at a time: as many as probably fit.
    local room = seen == 0 and 2 or math.ceil((maxBytes - size) * seen / size)
    local count = math.min(25, limit - seen, room)
    local found = redis.call("XRANGE", key, after == "" and "-" or "(" .. after, "+", "COUNT", count)
    for _, pair in ipairs(found) do
      after = pair[1]
      for i = 1, #pair[2] do size = size + #pair[2][i] end
      if visit(after, pair[2]) then return after, true end
    end
    seen = seen + #found
    if #found < count then return after, false end
  end
  return after, true
end
`,
});

/**
 * What a pass looks for.
 *
 * `want(one)`: a table with an `id`, the address of a message, or else a business `key`.
 * `eachWanting(address, trailer, visit)`: calls `visit` for each that looks for the message with this address and trailer.
 * `isOf(one, address, trailer)`: whether this is a message that `one` looks for.
 */
const wanting = defineFragment({
  needs: [readTrailer],
  lua: /* lua */ `
local byId, byKey = {}, nil
local function want(one)
  if one.id == "" then byKey = byKey or {} end
  local wanted, name = one.id ~= "" and byId or byKey, one.id ~= "" and one.id or one.key
  wanted[name] = wanted[name] or {}
  table.insert(wanted[name], one)
end
local function eachWanting(address, trailer, visit)
  for _, one in ipairs(byId[address] or {}) do visit(one) end
  local key = byKey and readTrailer(trailer or "")
  for _, one in ipairs(key and byKey[key] or {}) do visit(one) end
end
local function isOf(one, address, trailer)
  if one.id ~= "" then return address == one.id end
  return readTrailer(trailer or "") == one.key
end
`,
});

/** One page of a pass. */
export interface SeekPage {
  /** The id that was read last. */
  readonly after: string;
  readonly isMore: boolean;
  /** The entries that were found, each for one row. */
  readonly found: readonly { readonly row: number; readonly entryId: string }[];
}

const asSeekPage = (raw: RawReply): SeekPage =>
  asRow(raw, {
    after: asText,
    isMore: asFlag,
    found: (rows) => asRows(rows, { row: asNumber, entryId: asText }),
  });

/**
 * Looks for the messages of the rows, each an address or a business key, among the entries behind `after` of a stream; `reading` is
 * the body of a function of an entry's id and fields that returns a table with its `a` and `t`, or nil.
 */
const seek = (name: string, key: "stream" | "dead", needs: readonly Fragment[], reading: string) =>
  defineScript({
    name,
    keys: [key],
    args: ["after", "limit", "maxBytes"],
    each: ["id", "key"],
    needs: [eachEntry, wanting, ...needs],
    lua: /* lua */ `
local at = 0
for each row do
  want({ id = id, key = key, at = at })
  at = at + 1
end
local function read(entryId, fields) ${reading} end
local found = {}
local last, isMore = eachEntry(${key}, after, tonumber(limit), tonumber(maxBytes), function(entryId, fields)
  local entry = read(entryId, fields)
  if entry then
    eachWanting(entry.a, entry.t, function(one) found[#found + 1], found[#found + 2] = one.at, entryId end)
  end
end)
return { last, isMore and 1 or 0, found }
`,
    reply: asSeekPage,
  });

/** Looks among the entries of the stream. */
export const seekStream = seek("seek-stream", "stream", [entryOf], "return entryOf(fields)");

/** Looks among the dead letters. */
export const seekDead = seek("seek-dead", "dead", [letter], "return letterOf(entryId, fields)");

/**
 * `placesOf(one, take)`: where the message is that `one` looks for, as the rows of a reply: stage, address, group (false for
 * all), attempts and entry (or false). `one` says where it waits, as `resolve` does, and which `entries` and `letters` it may
 * have. Calls `take(kind, ...)` for each thing that is there, before it is among the rows, and leaves out those for which it
 * returns false: "waits" with its place, name and retry; "entry" with its id and fields and the claims of the groups that need
 * it; "letter" with its id. For the claims see `claimsOf`.
 */
const finding = defineFragment({
  keys: ["dead"],
  needs: [claims, groupsOf, letter, readEntry, wanting],
  lua: /* lua */ `
local groups = groupsOf()
local function placesOf(one, take)
  local places = {}
  local function add(stage, address, group, attempts, id)
    for _, value in ipairs({ stage, address, group or false, attempts, id or false }) do places[#places + 1] = value end
  end
  for _, retry in ipairs(one.all or {}) do
    if take("waits", "retrying", retry.name, retry) then add("retrying", retry.a, retry.g, retry.n) end
  end
  if one.place and not one.all and take("waits", one.place, one.name) then
    add(one.place, one.id ~= "" and one.id or one.index:sub(1, 24), false, 0)
  end
  for _, id in ipairs(one.entries) do
    local entry = readEntry(id)
    local claims = entry and isOf(one, entry.a, entry.t) and claimsOf(id, entry, groups) or {}
    if #claims > 0 and take("entry", id, entry, claims) then
      local isNew = not entry.g and #claims == math.max(1, #groups)
      for _, claim in ipairs(claims) do isNew = isNew and not claim.consumer end
      if isNew then add("ready", entry.a, false, entry.n, id) end
      for _, claim in ipairs(isNew and {} or claims) do
        -- What a consumer has not been handed yet waits behind a failed message, or for its own next attempt.
        local waits = claim.consumer and entry.n > 0 and "retrying" or "ready"
        add(claim.isRunning and "running" or waits, entry.a, claim.group, entry.n + (claim.isRunning and 1 or 0), id)
      end
    end
  end
  for _, id in ipairs(one.letters) do
    local found = redis.call("XRANGE", dead, id, id)[1]
    local letter = found and letterOf(id, found[2])
    if letter and isOf(one, letter.a, letter.t) and take("letter", id) then
      add("dead", letter.a, letter.g, tonumber(letter.n) or 0)
    end
  end
  return places
end
`,
});

/**
 * Reads the rows, and looks where their messages are: those of `rows` that have `isSure` set, and all if `isMore` is false,
 * have been looked for everywhere. `isFirst` (1 or 0): no pass has been made.
 *
 * A message with one group is in one place. So by its id it need not be looked for elsewhere once it is found; nor in all of
 * the stream while it lies behind its deadline, where it was appended if it was moved on time.
 */
const lookedFor = (columns: string) => /* lua */ `
local rows, isOpen, isAlone = {}, false, #groups <= 1
local function lookNear(one)
  local deadline = deadlineOf(one.id)
  if not (deadline >= 1 and deadline < 9e15) then return end
  eachEntry(stream, string.format("%.0f-0", math.ceil(deadline) - 1), ${NEAR}, ${NEAR_BYTES}, function(id, fields)
    local entry = entryOf(fields)
    if not entry or entry.a ~= one.id or #claimsOf(id, entry, groups) == 0 then return false end
    one.entries, one.isSure = { id }, true
    return true
  end)
end
for each row do
  local one = { id = id, key = key, entries = {}, letters = {}${columns} }
  for entry in entries:gmatch("%S+") do one.entries[#one.entries + 1] = entry end
  for entry in letters:gmatch("%S+") do one.letters[#one.letters + 1] = entry end
  one.place, one.name, one.due, one.all, one.index = resolve(id, key)
  if id ~= "" and isAlone then
    one.isSure = one.place ~= nil
    if not one.place and isFirst == "1" then lookNear(one) end
  elseif id ~= "" then
    -- Of several groups, some may retry while others have it.
    one.isSure = one.place ~= nil and not one.all
  end
  if not one.isSure then
    isOpen = true
    want(one)
  end
  rows[#rows + 1] = one
end
local isMore, _ = false, nil
if isOpen then
  _, isMore = eachEntry(stream, after, ${TAIL}, ${TAIL_BYTES}, function(id, fields)
    local entry = entryOf(fields)
    if entry then eachWanting(entry.a, entry.t, function(one) one.entries[#one.entries + 1] = id end) end
  end)
end
if isOpen and not isMore then
  _, isMore = eachEntry(dead, afterDead, ${TAIL}, ${TAIL_BYTES}, function(id, fields)
    local letter = letterOf(id, fields)
    eachWanting(letter.a, letter.t, function(one) one.letters[#one.letters + 1] = id end)
  end)
end
`;

/** How many entries behind a deadline are worth a look. */
const NEAR = 60;
const NEAR_BYTES = 32_768;

/** How many entries the last script looks at behind the cursors; of more, a pass has to see the others first. */
const TAIL = 100;
const TAIL_BYTES = 131_072;

/** Seconds for which Redis remembers, after the last one, which handlers of revoked messages may still run. */
const KEPT_SECONDS = 3600;

const looking = [deadlineOf, eachEntry, entryOf, finding, letter, resolve, wanting];

/** The places of each row's message; undefined for a row that has to be sent again after a pass. */
const asPlaces = (raw: RawReply): (readonly FoundPlace[] | undefined)[] =>
  asArray(raw).map(
    orNothing((rows) =>
      asRows(rows, {
        stage: (stage) => asText(stage) as FoundPlace["stage"],
        address: asBuffer,
        group: orNothing(asText),
        attempts: asNumber,
        entryId: orNothing(asText),
      }),
    ),
  );

/**
 * Returns where the messages of the rows are, each an address (`id`) or a business `key`. `entries` and `letters`: what passes
 * have found of it, parted by spaces, up to `after` and `afterDead`; what lies behind these is looked through here. If that is
 * too much, the reply for the row is nil.
 */
export const stage = defineScript({
  name: "stage",
  keys: ["stream"],
  args: ["isFirst", "after", "afterDead"],
  each: ["id", "key", "entries", "letters"],
  needs: looking,
  lua: /* lua */ `
${lookedFor("")}
local replies = {}
for i, one in ipairs(rows) do
  replies[i] = (one.isSure or not isMore) and placesOf(one, function() return true end) or false
end
return replies
`,
  reply: asPlaces,
});

/**
 * Removes the messages of the rows from every place in which they are, for every group: they never begin again. Returns where
 * they were, as {@link stage} does. Rows that name one message in two ways: the first has its places, the others none.
 *
 * What was handed to a consumer is noted in `revoked`, until the consumer says that its handler has ended; and every consumer
 * that has one of the entries is told on the channel `notices`. The `reason` may be empty.
 *
 * Must not be sent twice, because its reply reports what this run did: use the connection that never resends.
 *
 * No rollback: what is removed is asked before the first write, which is the note. What comes last may be refused: the
 * holder then hears of it with its next beat, and a lane goes on a second later.
 */
export const revoke = defineScript({
  name: "revoke",
  keys: ["stream", "businessKeys", "revoked"],
  args: ["channel", "notices", "isFirst", "after", "afterDead", "elementsAre"],
  each: ["id", "key", "entries", "letters", "reason"],
  needs: [...looking, leaving, may],
  rarely: [dropOnce, freeing, keysOf, keysOfRetries, turnBytes],
  lua: /* lua */ `
${lookedFor(", reason = reason")}
local isTaken, names, places, members, entries = {}, {}, {}, {}, {}
local acks, gone, buried, notes, fields, lanes, once = {}, {}, {}, {}, {}, {}, {}
local reason
local function take(kind, name, found, more)
  if kind == "waits" then
    if isTaken[kind .. found] then return false end
    isTaken[kind .. found] = true
    if not names[name] then names[name], places[#places + 1] = {}, name end
    names[name][#names[name] + 1] = found
    if more then
      entries[#entries + 1], once[#once + 1] = more, more
    else members[#members + 1] = found end
    return true
  end
  -- Ids of the stream and of the letters look alike.
  if isTaken[kind .. name] then return false end
  isTaken[kind .. name] = true
  if kind == "letter" then
    buried[#buried + 1] = name
    return true
  end
  gone[#gone + 1], once[#once + 1] = name, found
  if found.l then lanes[#lanes + 1] = (rare().laneIn(found.t)) end
  for _, claim in ipairs(more) do
    local consumer, group = claim.consumer, claim.group
    if consumer then
      acks[group] = acks[group] or {}
      acks[group][#acks[group] + 1] = name
      notes[#notes + 1] = cjson.encode({ name, group, consumer, reason })
      if claim.isRunning then
        fields[#fields + 1], fields[#fields + 2] = name .. " " .. group, cjson.encode({ consumer, reason })
      end
    end
  end
  return true
end
local replies = {}
for i, one in ipairs(rows) do
  reason = one.reason
  replies[i] = (one.isSure or not isMore) and placesOf(one, take) or false
end
local keys = #members > 0 and rare().keysOf(members) or {}
for _, key in ipairs(#entries > 0 and rare().keysOfRetries(entries) or {}) do keys[#keys + 1] = key end
for group in pairs(acks) do redis.call("XACK", stream, group, "0-0") end
if #gone > 0 then may("XDEL", stream) end
if #buried > 0 then may("XDEL", dead) end
mayLeave(places, true)
if #fields > 0 then
  may("HDEL", revoked)
  redis.call("EXPIRE", revoked, ${KEPT_SECONDS})
  local noted = redis.pcall("HSET", revoked, unpack(fields))
  if type(noted) == "table" then return noted end
  redis.call("EXPIRE", revoked, ${KEPT_SECONDS})
end
for group, ids in pairs(acks) do redis.call("XACK", stream, group, unpack(ids)) end
if #gone > 0 then redis.call("XDEL", stream, unpack(gone)) end
if #buried > 0 then redis.call("XDEL", dead, unpack(buried)) end
for _, place in ipairs(places) do leave(place, names[place], elementsAre) end
-- If it stays, an entry of the index points to nothing.
if #keys > 0 then redis.pcall("HDEL", businessKeys, unpack(keys)) end
for _, note in ipairs(notes) do redis.pcall("PUBLISH", notices, note) end
for _, one in ipairs(once) do
  if (one.t or ""):byte(3) == 10 then pcall(rare().dropOnce, one.a, one.t) end
end
if #lanes > 0 then pcall(rare().freeLanes, lanes) end
return replies
`,
  reply: asPlaces,
});

/**
 * Returns for each entry of a revoked message whether its handler may still run: its consumer has not said that it has ended,
 * and lives. `leaseTimeout`: for how many milliseconds a consumer may be silent whose name does not say it.
 */
export const areRunning = defineScript({
  name: "are-running",
  keys: ["revoked"],
  args: ["leaseTimeout"],
  each: ["entry", "group"],
  needs: [consumersOf, isAlive],
  lua: /* lua */ `
local alive, flags = {}, {}
for each row do
  local kept = redis.call("HGET", revoked, entry .. " " .. group)
  local isRead, noted = pcall(cjson.decode, kept or "")
  local isNoted = kept and isRead and type(noted) == "table"
  if isNoted and not alive[group] then
    alive[group] = {}
    for _, one in ipairs(consumersOf(group)) do
      if isAlive(one, leaseTimeout) then alive[group][one.name] = true end
    end
  end
  flags[#flags + 1] = isNoted and alive[group][noted[1]] and 1 or 0
end
return flags
`,
  reply: asFlags,
});
