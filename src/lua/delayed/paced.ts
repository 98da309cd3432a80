import { replied } from "../fragments/deadline.ts";
import { pacedDue, paceAt } from "../places/pace.ts";
import { defineScript, type Script } from "../script.ts";
import { inTurns, straight, together } from "./in-turns.ts";

/** Whether the queue has a flow: a rate, or lanes. */
export const IS_PACED = `({ paced = true, lanes = true })[redis.pcall("HGET", flow, "kind")]`;

/** What a transfer replies that knows of no flow where there is one: it has moved nothing. */
export const HELD =
  "{ 0, 0, now, false, 0, 0, 0, false, {}, 0, false, false, false, false, false, false, 1 }";

/** How a transfer to the LIST learns that the queue is reliable, and holds back if it has a rate: one question for both. */
export const LIST_UNLESS_PACED = `
local isStream = redis.call("EXISTS", stream, flow) > 0
if isStream and redis.call("EXISTS", flow) == 1 then
  if ${IS_PACED} then return ${HELD} end
  isStream = redis.call("EXISTS", stream) == 1
end`.trim();

/** How a transfer to the stream holds back if the queue has a rate: it asks whenever it claims, and sweeps ask each time. */
export const STREAM_UNLESS_PACED = `if claim ~= "0" and ${IS_PACED} then return ${HELD} end`;

/**
 * Returns the form of a transfer that keeps the queue's rate: it moves as many messages and retries as may go, by deadline
 * whichever they are, and `next` is when more may. One that stands by, with a `grace`, sees only what could have gone before.
 * If there is no rate any more, it moves all that is due.
 *
 * In a queue with lanes it moves in turns, unless all that is due may go: then as without. If only schedules have lanes, it
 * moves their runs and all retries in turns, and then the others as without.
 *
 * What is to move uses the rate up first: if Redis refuses that write, nothing moves. What did not move gives its part back.
 *
 * The part has one of `shares` equal shares of the rate. `arriving` is empty, unless the number of partitions changes and
 * messages arrive in this one: then it has a byte for each bucket, 1 if its messages come from another partition. Until the
 * change has ended, their lanes get no turns here if lanes have limits: what counts towards these may still be there.
 */
export function paced<Key extends string, Arg extends string, Reply>(
  { name, keys, args, reply, source }: Script<Key, Arg, Reply, never>,
  zsets: "{ timeouts }" | "{ timeouts, retries }",
): Script<Key | "flow", Arg | "shares" | "arriving", Reply, never> {
  const body = source.body
    .replace(LIST_UNLESS_PACED, `local isStream = redis.call("EXISTS", stream) == 1`)
    .replace(STREAM_UNLESS_PACED, "");
  return defineScript({
    name: name.replace("transfer", "transfer-paced"),
    keys,
    args: [...args, "shares", "arriving"],
    needs: [...source.needs, paceAt, pacedDue, replied, straight],
    rarely: [...source.rarely, inTurns, together],
    lua: /* lua */ `
local now = clock()
local function clock() return now end
local latest = math.floor(now / 1000) - grace
local pace, kind, only = paceAt(now, grace * 1000, shares)
local function mostNow()
  return pace and (kind == "paced" or only) and math.min(limit, pace.tokens) or tonumber(limit)
end
local due, count = pacedDue(${zsets}, latest, mostNow())
local function firstDue(zset) return unpack(due[zset], 1, 4) end
local function useUp(messages)
  local arrival = string.format("%.0f", math.max(pace.arrival, now) + messages * pace.step)
  local used = redis.pcall("HSET", flow, "arrival", arrival)
  return type(used) == "table" and used or nil
end
local beside, look = nil, nil
if kind == "lanes" and only then
  local runs
  runs, look = runsApart(due, latest)
  if runs then
    beside = rare().inTurns(runs, now, latest, pace, pace and useUp)
    if beside.err then return beside end
    local later = due[retries]
    pace = paceAt(now, grace * 1000, shares)
    due, count = pacedDue({ timeouts }, latest, mostNow())
    count = cutAtRun(due[timeouts], count)
    if later then due[retries] = { {}, {}, later[3], false } end
  end
elseif kind == "lanes" and not mayGoStraight(due, count, pace, now) then
  return rare().inTurns(due, now, latest, pace, pace and useUp)
end
if pace and (count > 0 or pace.wasTurned) and useUp(count) then
  -- When memory is full, Redis refuses only the first write, and never a removal.
  redis.call("ZREMRANGEBYRANK", timeouts, 1, 0)
  local refusal = useUp(count)
  if refusal then return refusal end
end
local function move()
${body}
end
local reply = move()
if reply.err then return beside and rare().unlessMoved(beside, reply) or reply end
for i = #reply + 1, 16 do reply[i] = false end
reply[17], reply[18] = (pace or kind == "lanes") and 1 or 0, 0
if pace then
  local moved, since, next = reply[1], tonumber(reply[8] or nil), tonumber(reply[4] or nil)
  if moved < count then useUp(moved) end
  if moved > 0 and since then reply[18] = math.max(0, math.floor(math.min(pace.since, now) / 1000 - since)) end
  if next and next <= latest and moved >= pace.tokens then reply[4] = replied(pace.next(moved)) end
end
if look then reply[4] = replied(math.min(look, tonumber(reply[4] or nil) or look)) end
return beside and rare().together(reply, beside) or reply
`,
    reply,
  });
}
