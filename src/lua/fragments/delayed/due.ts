import { defineFragment } from "../../fragment.ts";

/**
 * Reads the members of a ZSET of deadlines that are due: those with scores up to `latest`, earliest first.
 *
 * `firstDue(zset, latest, count)`: the due members among the first `count`, their scores, and the score of the first
 * member that is not due, or false if all of these are due.
 * `allDue(zset, latest, limit)`: up to `limit` due members, and their scores.
 */
export const due = defineFragment({
  lua: /* lua */ `
local function firstDue(zset, latest, count)
  local found = redis.call("ZRANGE", zset, 0, count - 1, "WITHSCORES")
  local members, scores = {}, {}
  for i = 1, #found, 2 do
    local score = tonumber(found[i + 1])
    if score > latest then return members, scores, score end
    members[#members + 1], scores[#scores + 1] = found[i], score
  end
  return members, scores, false
end
local function allDue(zset, latest, limit)
  local found = redis.call("ZRANGEBYSCORE", zset, "-inf", latest, "WITHSCORES", "LIMIT", 0, limit)
  local members, scores = {}, {}
  for i = 1, #found, 2 do members[#members + 1], scores[#scores + 1] = found[i], tonumber(found[i + 1]) end
  return members, scores
end
`,
});
