import { defineFragment } from "../../fragment.ts";

/**
 * `inFlight(group, first, last, limit[, consumer])`: what `XPENDING` replies for these entries of the group, or of
 * one consumer: rows that begin with the id. None where there is no such stream or group.
 */
export const inFlight = defineFragment({
  keys: ["stream"],
  lua: /* lua */ `
local function inFlight(group, first, last, limit, ...)
  local found = redis.pcall("XPENDING", stream, group, first, last, limit, ...)
  if not found.err then return found end
  if found.err:find("^%-?NOGROUP") then return {} end
  -- Once more, to raise the error: Redis 6.2 and 7.0 want it in different forms.
  return redis.call("XPENDING", stream, group, first, last, limit, ...)
end
`,
});
