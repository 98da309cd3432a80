import { defineFragment } from "../../fragment.ts";
import { appendAll } from "../stream/append-all.ts";
import { retry } from "./retry.ts";

/**
 * Retries that are due come back to the stream, each as an entry for its group only.
 *
 * `readRetries(names)`: what they are, before anything is written: `entries` and their `names`; the `broken`
 * names, which lead to no entry; and the bytes that were found there, `unreadable`.
 * `mayDropRetries()`: raises Redis's error if it may not remove any.
 * `bringBack(found)`: appends the entries, and drops those and the broken names; returns how many entries came
 * back, and the error if Redis has refused the next one. What it refuses stays a retry.
 *
 * Nothing can come of a broken name: without its value there is no payload, and without an address and a
 * group nobody could settle it. If it stayed it would be due for ever. Its bytes are kept, as those of a member that nobody
 * can unpack are.
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
