import { defineFragment } from "../../fragment.ts";

/**
 * `pushAll(payloads)`: pushes due payloads to the ready LIST, either all or none; returns how many, and the error if
 * Redis has refused them.
 *
 * When memory is full, Redis refuses only the first write of a script, and never a removal. So a refused push is tried
 * again after a removal that removes nothing.
 */
export const pushAll = defineFragment({
  keys: ["ready", "timeouts"],
  lua: /* lua */ `
local function pushAll(payloads)
  local pushed = redis.pcall("RPUSH", ready, unpack(payloads))
  if type(pushed) == "table" then
    redis.call("ZREMRANGEBYRANK", timeouts, 1, 0)
    pushed = redis.pcall("RPUSH", ready, unpack(payloads))
  end
  if type(pushed) == "table" then return 0, pushed end
  return #payloads
end
`,
});
