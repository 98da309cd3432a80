/**
 * The keys that say until when, or since when, a process is known to live, by their names in scripts: `members` holds the
 * instant of the last sign of each, `holder` the one until which a lease lasts.
 */
export const SIGNED: readonly string[] = ["members", "holder"];

/**
 * Puts off what such a key says by ARGV[1] milliseconds, from the instant ARGV[2] on (epoch ms); ARGV[3] is how long a
 * lease lasts. What lies later than a sign can has been put off already: the same server may have two addresses. Replies
 * 0 if there is no such key.
 */
export const PUT_OFF = /* lua */ `
local key, by, from, duration = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]
local kind, left = redis.call("TYPE", key).ok, redis.call("PTTL", key)
local isDone = kind == "none"
if kind == "zset" then
  isDone = redis.call("ZCOUNT", key, string.format("(%.0f", from), "inf") > 0
  for _, member in ipairs(isDone and {} or redis.call("ZRANGE", key, 0, -1)) do redis.call("ZINCRBY", key, by, member) end
elseif kind == "hash" then
  local til = tonumber(redis.call("HGET", key, "until"))
  isDone = not til or til > from + duration
  if not isDone then redis.call("HINCRBY", key, "until", by) end
end
if not isDone and left > 0 then redis.call("PEXPIRE", key, string.format("%.0f", left + by)) end
return kind == "none" and 0 or 1
`;
