import { defineFragment } from "../fragment.ts";
import { claim } from "../fragments/claim.ts";
import { payloadsOf } from "../fragments/collected.ts";

/**
 * The key `listed` exists while the ready LIST holds messages, so that tools find a plain queue in which nothing else is left: the
 * LIST has the bare name of the queue, and looks like any other. It is only a hint. A task sets it when it moves messages to the
 * LIST, at most once between two sweeps; a sweep, and the end of a task, bring it in step. It expires 30 days after that, so that
 * names are not kept for ever if another program empties the LIST.
 *
 * `setListed()`: sets it.
 * `checkListed(task)`: sets or deletes it; returns whether the LIST holds messages (1 or 0). Another task than the last
 * mover does not delete it: that one relies on having set it.
 */
export const listed = defineFragment({
  keys: ["ready", "listed"],
  needs: [claim],
  lua: /* lua */ `
local function setListed()
  redis.pcall("SET", listed, "1", "EX", 2592000)
end
local function checkListed(task)
  local isListed = redis.call("EXISTS", ready)
  local last = isListed == 0 and readClaim()
  if isListed == 1 then setListed() elseif not last or last == task then redis.pcall("DEL", listed) end
  return isListed
end
`,
});

/**
 * `pushAll(messages)`: pushes due messages to the ready LIST, either all or none; returns how many, and the error if
 * Redis has refused them. A message is a payload or, if `messages.several` is set, a table of its payloads.
 *
 * When memory is full, Redis refuses only the first write of a script, and never a removal. So a refused push is tried
 * again after a removal that removes nothing.
 */
export const pushAll = defineFragment({
  keys: ["ready", "timeouts"],
  rarely: [payloadsOf],
  lua: /* lua */ `
local function pushAll(messages)
  local chunks = messages.several and rare().chunksOf(messages)
  local first = chunks and chunks[1] or messages
  local pushed = redis.pcall("RPUSH", ready, unpack(first))
  if type(pushed) == "table" then
    redis.call("ZREMRANGEBYRANK", timeouts, 1, 0)
    pushed = redis.pcall("RPUSH", ready, unpack(first))
  end
  if type(pushed) == "table" then return 0, pushed end
  for i = 2, chunks and #chunks or 0 do redis.call("RPUSH", ready, unpack(chunks[i])) end
  return #messages
end
`,
});
