import { defineFragment } from "../fragment.ts";
import { appendAll } from "./stream.ts";
import { heldKeyOf, holdKey } from "./key-index.ts";
import { retryBytes, retryOf } from "./retries.ts";
import { may } from "../fragments/may.ts";
import { wakeUp } from "../fragments/wake-up.ts";

/**
 * `tryRetries()`: returns Redis's error if adding a retry is not permitted, else nothing; nothing is left behind. Only
 * writing a field shows whether that is permitted, so removing it is tried first. When memory is full, Redis refuses
 * only the first write of a script, and never a removal.
 */
export const tryRetries = defineFragment({
  keys: ["retries", "retrying"],
  lua: /* lua */ `
local function tryRetries()
  local tries = {
    { "HDEL", retrying, "delayline: nothing" },
    { "ZADD", retries, "XX", 0, "delayline: nothing" },
    { "HSET", retrying, "delayline: nothing", "" },
    { "HDEL", retrying, "delayline: nothing" },
  }
  for _, try in ipairs(tries) do
    local done = redis.pcall(unpack(try))
    if type(done) == "table" then return done end
  end
end
`,
});

/** `holdAgain(entry)`: makes the message of an entry hold its business key again, unless a newer one has it. */
const holdAgain = defineFragment({
  needs: [heldKeyOf, holdKey],
  lua: /* lua */ `
local function holdAgain(entry)
  local key = heldKeyOf(entry)
  if key then holdKey(key, entry.a) end
end
`,
});

/**
 * `putRetry(entry, group, deadline[, isKeyless])`: makes the message of an entry a retry of the group; returns the reply
 * of `ZADD`, or a table with Redis's error. Behind `tryRetries` Redis refuses nothing of that. A message that is a retry
 * of the group already gets the new due time. The message holds its business key again, unless it has none
 * (`isKeyless`). If Redis refuses the index, where nothing can be offered with a key either, the retry is without one.
 */
export const putRetry = defineFragment({
  keys: ["retries", "retrying"],
  needs: [retryBytes],
  rarely: [holdAgain],
  lua: /* lua */ `
local function putRetry(entry, group, deadline, isKeyless)
  local name = retryName(entry.a, group)
  local done = redis.pcall("HSET", retrying, name, packRetry(entry))
  if type(done) == "table" then return done end
  done = redis.pcall("ZADD", retries, deadline, name)
  if type(done) == "number" and not isKeyless then pcall(rare().holdAgain, entry) end
  return done
end
`,
});

/**
 * `putHeldBack(entry, group)`: makes a message that is held back (`heldBack`) a retry. The first one is tried
 * first, and wakes whoever moves messages, to arm its timer; Redis may refuse that as well.
 */
export const putHeldBack = defineFragment({
  needs: [putRetry, tryRetries, wakeUp],
  lua: /* lua */ `
local areOthersAwake = false
local function putHeldBack(entry, group)
  if not areOthersAwake then
    local refusal = tryRetries()
    if refusal then return refusal end
    refusal = wakeUp(0)
    if refusal then return refusal end
    areOthersAwake = true
  end
  return putRetry(entry, group, entry.u)
end
`,
});

/**
 * `mayDropRetries()`: raises Redis's error if removing retries is not permitted.
 * `dropRetries(names, count)`: removes the first `count` of these retries.
 */
export const dropRetries = defineFragment({
  keys: ["retries", "retrying"],
  needs: [may],
  lua: /* lua */ `
local function mayDropRetries()
  may("ZREM", retries)
  may("HDEL", retrying)
end
local function dropRetries(names, count)
  if count == 0 then return end
  redis.call("ZREM", retries, unpack(names, 1, count))
  redis.call("HDEL", retrying, unpack(names, 1, count))
end
`,
});

/**
 * Moves due retries back to the stream, each as an entry for its group alone.
 *
 * `readRetries(names)`: reads retries, before anything is written. Returns a table: `entries` and their `names`;
 * `broken`, the names without a readable entry; and `unreadable`, the bytes found under those names.
 * `keysOfRetries(found.entries)`: the business keys that are free once these retries have left; see `keyHold`.
 * `bringBack(found)`: appends the entries, and removes them and the broken names from the retries. Returns how many
 * entries were appended, and Redis's error if it refused the next one. Refused entries stay retries.
 *
 * A broken name cannot be delivered: it has no value with a payload, or no address and group to settle it by. If it
 * stayed, it would be due for ever. Its bytes go to the list of unreadable messages, like delayed members that cannot
 * be unpacked.
 */
export const bringBack = defineFragment({
  keys: ["retries", "retrying", "unreadable"],
  needs: [appendAll, dropRetries, retryOf],
  lua: /* lua */ `
local function readRetries(names)
  local found = { entries = {}, names = {}, broken = {}, unreadable = {} }
  if #names == 0 then return found end
  for i, value in ipairs(redis.call("HMGET", retrying, unpack(names))) do
    local address, group = retryOf(names[i])
    local entry = address and #address >= 8 and unpackRetry(value)
    if entry then
      entry.a, entry.g, entry.name = address, group, names[i]
      found.entries[#found.entries + 1] = entry
      found.names[#found.names + 1] = names[i]
    else
      found.broken[#found.broken + 1] = names[i]
      if value then found.unreadable[#found.unreadable + 1] = value end
    end
  end
  return found
end
local function bringBack(found)
  if #found.unreadable > 0 then redis.call("RPUSH", unreadable, unpack(found.unreadable)) end
  dropRetries(found.broken, #found.broken)
  local count, refusal = appendAll(found.entries)
  dropRetries(found.names, count)
  return count, refusal
end
`,
});
