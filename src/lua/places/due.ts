import { defineFragment } from "../fragment.ts";

/*
 * The two places that are ordered by deadlines: delayed messages and retries, each a ZSET. Only their messages hold
 * business keys.
 */

/** `dueZsets`: the ZSETs of these places. */
export const dueZsets = defineFragment({
  keys: ["timeouts", "retries"],
  lua: /* lua */ `
local dueZsets = { timeouts, retries }
`,
});

/**
 * `countDue([but])`: how many messages are delayed or retrying, or wait for their turn; `but` is the ZSET of a place to leave
 * out. O(1).
 */
export const countDue = defineFragment({
  keys: ["room"],
  needs: [dueZsets],
  lua: /* lua */ `
local function countDue(but)
  local count = redis.call("HLEN", room)
  for _, zset in ipairs(dueZsets) do
    if zset ~= but then count = count + redis.call("ZCARD", zset) end
  end
  return count
end
`,
});

/**
 * `earliestDue([but])`: the earliest deadline of all delayed messages and retries, or nil if there are none; `but` is the
 * ZSET of a place to leave out.
 */
export const earliestDue = defineFragment({
  needs: [dueZsets],
  lua: /* lua */ `
local function earliestDue(but)
  local earliest = nil
  for _, zset in ipairs(dueZsets) do
    local due = zset ~= but and tonumber(redis.call("ZRANGE", zset, 0, 0, "WITHSCORES")[2])
    if due and (not earliest or due < earliest) then earliest = due end
  end
  return earliest
end
`,
});

/**
 * Reads the members of a ZSET of deadlines that are due: those with scores up to `latest`, earliest first.
 *
 * `firstDue(zset, latest, limit)`: the due members among the first four, their scores, the score of the first member
 * that is not due (false if all of these are due), and whether there may be more. Usually these are all that are due.
 */
export const firstDue = defineFragment({
  lua: /* lua */ `
local function firstDue(zset, latest, limit)
  local count = math.min(4, limit)
  local found = redis.call("ZRANGE", zset, 0, count - 1, "WITHSCORES")
  local members, scores = {}, {}
  for i = 1, #found, 2 do
    local score = tonumber(found[i + 1])
    if score > latest then return members, scores, score, false end
    members[#members + 1], scores[#scores + 1] = found[i], score
  end
  return members, scores, false, #members == count
end
`,
});

/**
 * `allDue(zset, latest, limit)`: up to `limit` due members, and their scores.
 * `headOf(zset)`: the lowest score; false if the ZSET is empty.
 */
export const allDue = defineFragment({
  lua: /* lua */ `
local function allDue(zset, latest, limit)
  local found = redis.call("ZRANGEBYSCORE", zset, "-inf", latest, "WITHSCORES", "LIMIT", 0, limit)
  local members, scores = {}, {}
  for i = 1, #found, 2 do members[#members + 1], scores[#scores + 1] = found[i], tonumber(found[i + 1]) end
  return members, scores
end
local function headOf(zset)
  return tonumber(redis.call("ZRANGE", zset, 0, 0, "WITHSCORES")[2]) or false
end
`,
});
