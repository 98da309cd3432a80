import { defineFragment } from "../../fragment.ts";
import { retry } from "./retry.ts";

/**
 * `putRetry(entry, group, deadline)`: makes the message of an entry a retry of the group; returns the reply of `ZADD`, or
 * a table with Redis's error, and nothing is written then. A message that is a retry of the group already gets the new
 * due time.
 */
export const putRetry = defineFragment({
  keys: ["retries", "retrying"],
  needs: [retry],
  lua: /* lua */ `
local function putRetry(entry, group, deadline)
  local name = retryName(entry.a, group)
  local isNew = redis.pcall("HSET", retrying, name, packRetry(entry))
  if type(isNew) == "table" then return isNew end
  local done = redis.pcall("ZADD", retries, deadline, name)
  if type(done) == "table" and isNew == 1 then redis.call("HDEL", retrying, name) end
  return done
end
`,
});
