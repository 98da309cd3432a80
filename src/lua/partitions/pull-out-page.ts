import { bytes } from "../fragments/message/bytes.ts";
import { depart } from "../fragments/partitions/depart.ts";
import { BATCH, type Batch } from "../fragments/partitions/journal.ts";
import { asBuffer, asRow, orNothing } from "../reply.ts";
import { defineScript } from "../script.ts";

/** A batch, and the cursor of the next page. */
export interface PulledPage extends Batch {
  /** The next cursor; undefined at the end. If the batch was open already, the cursor of this page. */
  readonly next: Buffer | undefined;
}

/** The cursor of the first page. */
export const FIRST_PAGE = Buffer.alloc(0);

/**
 * Looks at the delayed messages of this partition from the latest deadline down, and after them at the retries: at most
 * `limit` at a time, and about `maxBytes`. Takes out those that belong to another partition, as `pullOutKeys` does.
 * O(log N) for each page.
 *
 * A cursor is `m` (messages) or `r` (retries), followed by the score of the last member that was looked at and the
 * beginning of its bytes. So every member that stays is looked at exactly once, even if others come and go between two
 * pages. The first 32 bytes include the id and are nearly always unique; if the next member begins with the same 32,
 * the cursor holds all bytes.
 */
export const pullOutPage = defineScript({
  name: "pull-out-page",
  keys: ["timeouts", "businessKeys", "retries", "retrying", "journal"],
  args: ["own", "buckets", "cursor", "limit", "maxBytes"],
  needs: [bytes, depart],
  lua: /* lua */ `
local number, batch = openBatch()
if number > 0 then return { number, batch, 1, cursor } end
limit, maxBytes = tonumber(limit), tonumber(maxBytes)
local isRetries = cursor:sub(1, 1) == "r"
local zset, add = timeouts, addMessage
if isRetries then zset, add = retries, addRetry end

local function isBefore(a, b)
  local count = math.min(#a, #b)
  local whole = count - count % 4
  local order = compareBytes(a, 1, b, 1, whole)
  for at = whole + 1, count do
    if order == 0 then order = a:byte(at) - b:byte(at) end
  end
  if order == 0 then return #a < #b end
  return order < 0
end
-- How many members are before the cursor.
local function findRank()
  if #cursor < 2 then return redis.call("ZCARD", zset) end
  local length = cursor:byte(2)
  local score, start = cursor:sub(3, 2 + length), cursor:sub(3 + length)
  local rank = redis.call("ZCOUNT", zset, "-inf", "(" .. score)
  local high = rank + redis.call("ZCOUNT", zset, score, score)
  while rank < high do
    local at = math.floor((rank + high) / 2)
    if isBefore(redis.call("ZRANGE", zset, at, at)[1], start) then rank = at + 1 else high = at end
  end
  return rank
end

local rank, seen, size = findRank(), 0, 0
local last, lastScore
while rank > 0 and seen < limit and size < maxBytes do
  -- A few at a time, since each may be large.
  local count = math.min(4, limit - seen, rank)
  local found = redis.call("ZRANGE", zset, rank - count, rank - 1, "WITHSCORES")
  for i = #found - 1, 1, -2 do
    last, lastScore = found[i], found[i + 1]
    add(last, lastScore)
    size = size + #last
  end
  rank, seen = rank - count, seen + count
end
local next = false
if rank > 0 then
  local start = last:sub(1, 32)
  if redis.call("ZRANGE", zset, rank - 1, rank - 1)[1]:sub(1, 32) == start then start = last end
  next = (isRetries and "r" or "m") .. string.char(#lastScore) .. lastScore .. start
elseif not isRetries and redis.call("EXISTS", retries) == 1 then
  next = "r"
end
number, batch = depart()
return { number, batch, 0, next }
`,
  reply: (raw): PulledPage => asRow(raw, { ...BATCH, next: orNothing(asBuffer) }),
});
