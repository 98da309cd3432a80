import { defineFragment } from "../fragment.ts";
import { entriesInRecord, KNOWN_FOR, LOOK_AFTER, RECORD_BYTES } from "../fragments/once-record.ts";
import { groupsOf } from "../fragments/stream-info.ts";
import { readTrailer } from "../fragments/trailer.ts";
import { claims } from "./claims.ts";
import { resolve } from "./key-index.ts";
import { retriesOf } from "./retries.ts";
import { readEntry } from "./stream.ts";

/** How far a message has come that an offer with `once` has found. */
export type OnceStage = "delayed" | "waiting" | "retrying" | "ready" | "running" | "handled";

/**
 * `recordOf(key)`: the record of a key; nil if there is none, or foreign bytes.
 * `endOf(record)`: when a record has nothing to say any more, by its acknowledgement; 0 without one.
 * `placeIn(record)`: where its message is, of what becomes ready: "running", "ready" or "retrying"; nil if it is nowhere there.
 */
export const onceRecord = defineFragment({
  keys: ["once"],
  needs: [claims, entriesInRecord, groupsOf, readEntry, retriesOf],
  lua: /* lua */ `
local function recordOf(key)
  local record = redis.call("HGET", once, key)
  return record and #record >= ${RECORD_BYTES} and record or nil
end
local function endOf(record)
  local at, keepFor = struct.unpack("<I8I8", record)
  return at > 0 and at + math.max(keepFor, ${KNOWN_FOR}) or 0
end
local function placeIn(record)
  local address, groups, place = record:sub(17, ${RECORD_BYTES}), nil, nil
  for _, id in pairs(entriesIn(record)) do
    local isId = type(id) == "string" and #id <= 41 and id:find("^%d+%-%d+$")
    local isThere, entry = pcall(readEntry, isId and id or "0-0")
    if isThere and entry and entry.a:sub(9) == address:sub(9) then
      groups = groups or groupsOf()
      for _, claim in ipairs(claimsOf(id, entry, groups)) do
        if claim.isRunning then return "running" end
        place = place or claim.consumer and entry.n > 0 and "retrying" or "ready"
      end
    end
  end
  return retriesOf(address)[1] and "retrying" or place
end
`,
});

/**
 * `onceHolder(key, now)`: the stage of the message in the record of a key: "running", "ready", "retrying" or "handled"; its
 * address; when it was handled (epoch ms), or nil; and whether the key is taken by it. A message that was handled may be known
 * for longer. Nil if the record has nothing to say. `now`: epoch ms.
 */
export const onceHolder = defineFragment({
  rarely: [onceRecord],
  lua: /* lua */ `
local function onceHolder(key, now)
  local record = rare().recordOf(key)
  if not record then return nil end
  local address, place = record:sub(17, ${RECORD_BYTES}), rare().placeIn(record)
  if place then return place, address, nil, true end
  local at, keepFor = struct.unpack("<I8I8", record)
  -- An instant that is far ahead is foreign.
  if now >= rare().endOf(record) or at > now + ${LOOK_AFTER} then return nil end
  return "handled", address, at, now < at + keepFor
end
`,
});

/**
 * `endOnce(key, address, keepFor, now, isOnly)`: notes that a group has acknowledged the message with this address. `isOnly`: it
 * is the only group, so the message is nowhere any more. `now`: epoch ms.
 */
export const endOnce = defineFragment({
  keys: ["once", "onceEnds"],
  lua: /* lua */ `
local function endOnce(key, address, keepFor, now, isOnly)
  local old = redis.call("HGET", once, key)
  local isKnown = old and old:sub(25, ${RECORD_BYTES}) == address:sub(9)
  -- A newer message has the key. An older release, or Java, may have made this one ready, and noted nothing.
  if old and #old >= ${RECORD_BYTES} and not isKnown then return end
  local entries = isKnown and not isOnly and old:sub(${RECORD_BYTES + 1}) or ""
  local at = math.floor(now)
  redis.call("HSET", once, key, struct.pack("<I8I8", at, keepFor) .. address .. entries)
  redis.call("ZADD", onceEnds, at + math.max(keepFor, ${KNOWN_FOR}), key)
end
`,
});

/**
 * `isKeyTaken(address, trailer, now)`: whether another message has the key of the one with this address and trailer, or was
 * handled and keeps it, if that was offered with `once`. `now`: epoch ms.
 */
export const keyTaken = defineFragment({
  needs: [onceHolder, resolve],
  lua: /* lua */ `
local function isKeyTaken(address, trailer, now)
  local key = readTrailer(trailer)
  if not key then return false end
  local place, _, _, _, entry = resolve("", key)
  if place then return entry:sub(9, 24) ~= address:sub(9) end
  local _, holder, _, isTaken = onceHolder(key, now)
  return isTaken and holder:sub(9) ~= address:sub(9)
end
`,
});

/** `dropOnce(address, trailer)`: forgets the message with this address and trailer, if it was offered with `once`. */
export const dropOnce = defineFragment({
  keys: ["once"],
  needs: [readTrailer],
  lua: /* lua */ `
local function dropOnce(address, trailer)
  if not trailer or trailer:byte(3) ~= 10 or trailer:byte(1) ~= 255 then return end
  local key = readTrailer(trailer)
  local record = key and redis.call("HGET", once, key)
  if record and record:sub(25, ${RECORD_BYTES}) == address:sub(9) then redis.call("HDEL", once, key) end
end
`,
});
