import { defineFragment } from "../fragment.ts";
import { appendAll } from "./stream.ts";
import { heldKeyOf, holdKey } from "./key-index.ts";
import { retryBytes, retryOf } from "./retries.ts";

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
    { "HDEL", retrying, "delayline: no such field" },
    { "ZADD", retries, "XX", 0, "delayline: no such member" },
    { "HSET", retrying, "delayline: no such field", "" },
    { "HDEL", retrying, "delayline: no such field" },
  }
  for _, try in ipairs(tries) do
    local done = redis.pcall(unpack(try))
    if type(done) == "table" then return done end
  end
end
`,
});

/**
 * `putRetry(entry, group, deadline)`: makes the message of an entry a retry of the group; returns the reply of `ZADD`, or
 * a table with Redis's error. Behind `tryRetries` Redis refuses nothing of that. A message that is a retry of the group
 * already gets the new due time. The message holds its business key again, unless a newer one has it. If Redis refuses
 * the index, where nothing can be offered with a key either, the retry is without one.
 */
export const putRetry = defineFragment({
  keys: ["retries", "retrying"],
  needs: [heldKeyOf, holdKey, retryBytes],
  lua: /* lua */ `
local function putRetry(entry, group, deadline)
  local name = retryName(entry.a, group)
  local done = redis.pcall("HSET", retrying, name, packRetry(entry))
  if type(done) == "table" then return done end
  done = redis.pcall("ZADD", retries, deadline, name)
  local key = type(done) == "number" and heldKeyOf(entry)
  if key then pcall(holdKey, key, entry.a) end
  return done
end
`,
});

/**
 * `putHeldBack(entry, group, channel)`: makes a message that is held back (`heldBack`) a retry. The first one is tried
 * first, and wakes whoever moves messages, to arm its timer; Redis may refuse that as well.
 */
export const putHeldBack = defineFragment({
  needs: [putRetry, tryRetries],
  lua: /* lua */ `
local areOthersAwake = false
local function putHeldBack(entry, group, channel)
  if not areOthersAwake then
    local refusal = tryRetries()
    if refusal then return refusal end
    local done = redis.pcall("PUBLISH", channel, "0")
    if type(done) == "table" then return done end
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
  lua: /* lua */ `
local function mayDropRetries()
  redis.call("ZREM", retries, "delayline: no such member")
  redis.call("HDEL", retrying, "delayline: no such field")
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
