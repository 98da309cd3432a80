import { defineFragment } from "../fragment.ts";

/**
 * No rollback: Redis rolls nothing back, so what a script has written is taken back by the script. After a refusal,
 * nothing is tried or written any more.
 *
 * `try(command, ...)`: carries out a command that has no effect, or none that has to be taken back: a probe of a right, a
 * wake-up. Returns its reply; nil if it is refused.
 * `write(takeBack, command, ...)`: the same for a command that `takeBack(reply)` undoes.
 * `wrote(takeBack, reply)`: the same for a reply of a command that was carried out otherwise.
 * `attempt(act, ...)`: calls a function. An error that it raises counts as a refusal.
 * `hint(command, ...)`: carries out a command whose refusal does no harm.
 * `refused()`: Redis's error, or nil.
 * `done(reply)`: returns the reply. After a refusal, it takes back what was written, the latest first, and returns the
 * error.
 */
export const writes = defineFragment({
  lua: /* lua */ `
local undo, refusal = {}, nil
local function refused()
  return refusal
end
local function wrote(takeBack, reply)
  if type(reply) == "table" and reply.err then
    refusal = refusal or reply
    return nil
  end
  if takeBack then undo[#undo + 1] = function() takeBack(reply) end end
  return reply
end
local function write(takeBack, ...)
  if not refusal then return wrote(takeBack, redis.pcall(...)) end
end
local function try(...)
  return write(nil, ...)
end
local function attempt(...)
  if refusal then return end
  local isDone, why = pcall(...)
  -- Redis 6.2 raises a string.
  if not isDone then refusal = refusal or type(why) == "table" and why or { err = "ERR " .. tostring(why) } end
end
local function hint(...)
  if not refusal then redis.pcall(...) end
end
local function done(reply)
  if not refusal then return reply end
  for i = #undo, 1, -1 do undo[i]() end
  return refusal
end
`,
});
