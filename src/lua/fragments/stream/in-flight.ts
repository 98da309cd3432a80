import { defineFragment } from "../../fragment.ts";

/**
 * `inFlight(group, first, last, limit[, consumer])`: the rows that `XPENDING` replies for the entries in flight in
 * this range, of one consumer or of the whole group. Each begins with the entry's id. None if the stream or the group
 * is missing.
 */
export const inFlight = defineFragment({
  keys: ["stream"],
  lua: /* lua */ `
local function inFlight(group, first, last, limit, ...)
  local found = redis.pcall("XPENDING", stream, group, first, last, limit, ...)
  if not found.err then return found end
  if found.err:find("^%-?NOGROUP") then return {} end
  -- Call it again to raise the error: Redis 6.2 and 7.0 differ in the form that error() needs.
  return redis.call("XPENDING", stream, group, first, last, limit, ...)
end
`,
});
