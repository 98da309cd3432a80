import { defineFragment } from "../fragment.ts";
import { readTrailer } from "./trailer.ts";

/*
 * What a queue remembers of messages that were offered with `once`: a record for each key, from when its message is ready on.
 * Before that the index of business keys leads to the message. The trailer of such a message begins with the field of tag 10.
 *
 * A record is never believed: it only says where to look. If its message is nowhere, and no group has acknowledged it, the key
 * is free. So nothing has to be noted when a message dies, is cancelled or revoked, and nothing that others do to the keys
 * leaves a key taken for ever.
 *
 * The HASH `once` has for each key `at(8) | keepFor(8) | address(24) | entries`, numbers little-endian: when a group acknowledged
 * the message last (epoch ms), 0 if none has; for how long the key stays taken from then on (ms); and the newest entry for each
 * group, a map in MessagePack of ids by `g` and group, or `*` for all groups. The ZSET `onceEnds` has the keys by when to look at
 * their records again (epoch ms): `forgetOnce` drops those that have nothing to say any more.
 */

/** Milliseconds for which the id of a message is known once it was handled, however soon its key is free. */
export const KNOWN_FOR = 60_000;

/** Milliseconds after which a record is looked at again whose message was not handled. */
export const LOOK_AFTER = 3_600_000;

/** The bytes of a record in front of the entries. */
export const RECORD_BYTES = 40;

/** `entriesIn(record)`: the entries in a record, by group; none in foreign bytes. */
export const entriesInRecord = defineFragment({
  lua: /* lua */ `
local function entriesIn(record)
  local isRead, found = pcall(cmsgpack.unpack, record:sub(${RECORD_BYTES + 1}))
  return isRead and type(found) == "table" and found or {}
end
`,
});

/**
 * `noteOnce(entry, id)`: notes that an entry was appended for the message of a trailer that begins with tag 10. If Redis
 * refuses, the key is free until the message is handled.
 */
export const noteOnce = defineFragment({
  keys: ["once", "onceEnds"],
  needs: [entriesInRecord, readTrailer],
  lua: /* lua */ `
local function noteOnce(entry, id)
  local trailer, key = entry.t, readTrailer(entry.t)
  if not key or trailer:sub(4, 7) ~= "\\8\\0\\0\\0" or #entry.a ~= 24 then return end
  local group = (entry.g or "") ~= "" and "g" .. entry.g or "*"
  -- An entry for all groups is the first one of its message.
  local old = group ~= "*" and redis.pcall("HGET", once, key)
  local isKnown = type(old) == "string" and old:sub(25, ${RECORD_BYTES}) == entry.a:sub(9)
  local entries = isKnown and entriesIn(old) or {}
  entries[group] = id
  local at = isKnown and old:sub(1, 8) or "\\0\\0\\0\\0\\0\\0\\0\\0"
  redis.pcall("HSET", once, key, at .. trailer:sub(8, 15) .. entry.a .. cmsgpack.pack(entries))
  -- The first part of an entry's id is when it was appended.
  if not isKnown then redis.pcall("ZADD", onceEnds, id:match("^%d+") + ${LOOK_AFTER}, key) end
end
`,
});
