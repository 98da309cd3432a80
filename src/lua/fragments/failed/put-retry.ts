import { defineFragment } from "../../fragment.ts";
import { retry } from "./retry.ts";

/**
 * `tryRetries()`: returns Redis's error if adding a retry is not permitted, else nothing; nothing is left behind. Only
 * writing a field shows whether that is permitted, so removing it is tried first. When memory is full, Redis refuses
 * only the first write of a script, and never a removal.
 * `putRetry(entry, group, deadline)`: makes the message of an entry a retry of the group; returns the reply of `ZADD`, or
 * a table with Redis's error. Behind `tryRetries` Redis refuses nothing of that. A message that is a retry of the group
 * already gets the new due time.
 * `putHeldBack(entry, group, channel)`: the same for a message that is held back (`heldBack`). The first one is tried
 * first, and wakes whoever moves messages, to arm its timer; Redis may refuse that as well.
 */
export const putRetry = defineFragment({
  keys: ["retries", "retrying"],
  needs: [retry],
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
local function putRetry(entry, group, deadline)
  local name = retryName(entry.a, group)
  local done = redis.pcall("HSET", retrying, name, packRetry(entry))
  if type(done) == "table" then return done end
  return redis.pcall("ZADD", retries, deadline, name)
end
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
