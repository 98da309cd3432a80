import { defineFragment } from "../../fragment.ts";
import { appendAll } from "../stream/append-all.ts";
import { retry } from "./retry.ts";

/**
 * Moves due retries back to the stream, each as an entry for its group alone.
 *
 * `readRetries(names)`: reads retries, before anything is written. Returns a table: `entries` and their `names`;
 * `broken`, the names without a readable entry; and `unreadable`, the bytes found under those names.
 * `mayDropRetries()`: raises Redis's error if removing retries is not permitted.
 * `dropRetries(names, count)`: removes the first `count` of these retries.
 * `bringBack(found)`: appends the entries, and removes them and the broken names from the retries. Returns how many
 * entries were appended, and Redis's error if it refused the next one. Refused entries stay retries.
 *
 * A broken name cannot be delivered: it has no value with a payload, or no address and group to settle it by. If it
 * stayed, it would be due for ever. Its bytes go to the list of unreadable messages, like delayed members that cannot
 * be unpacked.
 */
export const bringBack = defineFragment({
  keys: ["retries", "retrying", "unreadable"],
  needs: [appendAll, retry],
  lua: /* lua */ `
local function readRetries(names)
  local found = { entries = {}, names = {}, broken = {}, unreadable = {} }
  if #names == 0 then return found end
  for i, value in ipairs(redis.call("HMGET", retrying, unpack(names))) do
    local address, group = retryOf(names[i])
    local entry = address and #address >= 8 and unpackRetry(value)
    if entry then
      entry.a, entry.g = address, group
      found.entries[#found.entries + 1] = entry
      found.names[#found.names + 1] = names[i]
    else
      found.broken[#found.broken + 1] = names[i]
      if value then found.unreadable[#found.unreadable + 1] = value end
    end
  end
  return found
end
local function mayDropRetries()
  redis.call("ZREM", retries, "delayline: no such member")
  redis.call("HDEL", retrying, "delayline: no such field")
end
local function dropRetries(names, count)
  if count == 0 then return end
  redis.call("ZREM", retries, unpack(names, 1, count))
  redis.call("HDEL", retrying, unpack(names, 1, count))
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
