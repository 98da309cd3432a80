import { byElements, type Elements } from "../family.ts";
import { addressOf } from "../fragments/message/address-of.ts";
import { bringBack } from "../fragments/failed/bring-back.ts";
import { consumersOf } from "../fragments/stream/consumers-of.ts";
import { finish } from "../fragments/stream/finish.ts";
import { groupNames } from "../fragments/stream/group-names.ts";
import { withoutFailures } from "../fragments/failed/without-failures.ts";
import { asFlag, asNumber, asRow } from "../reply.ts";
import { defineScript } from "../script.ts";

export interface MakePlainReply {
  /** Whether there is no stream any more. */
  readonly isPlain: boolean;
  /** How many consumers live. Unless there are none, nothing has been moved. */
  readonly consumers: number;
  /** How many entries are in the stream, of which some may be in flight for consumers that have died. */
  readonly ready: number;
  /** How many retries are left. While there are some the stream stays. */
  readonly retrying: number;
  /** How many messages have been moved. */
  readonly moved: number;
}

/**
 * A step of making a reliable queue plain. First retries become delayed messages, `limit` at most, with the deadlines
 * that they have. When none is left, what is in the stream goes to the LIST, and the stream is dropped: only
 * if it has no more than `limit` entries, so that it is one step, and nobody who watches the LIST takes it back.
 *
 * While a consumer lives nothing is done: it lives if Redis has seen it within the visibility timeout that its name
 * tells; `timeout` is that of foreign names.
 *
 * Entries that every group has acknowledged are dropped. What has failed before is forgotten: a plain queue has no attempts.
 *
 * Redis rolls nothing back, so a message is put where it goes before it is removed: at worst it is handled once more.
 */
const define = (elements: Elements) =>
  defineScript({
    name: `make-plain-${elements}`,
    keys: ["timeouts", "order", "ready", "stream", "retries", "retrying", "unreadable"],
    args: ["channel", "limit", "timeout"],
    needs: [addressOf, bringBack, consumersOf, finish, groupNames, withoutFailures],
    lua: /* lua */ `
local alive = 0
for _, group in ipairs(groupNames()) do
  for _, consumer in ipairs(consumersOf(group)) do
    local own = tonumber(consumer.name:match("^delayline:(%d+):")) or tonumber(timeout)
    if consumer.idle < own then alive = alive + 1 end
  end
end
local count, waiting = redis.call("XLEN", stream), redis.call("ZCARD", retries)
if alive > 0 then return { 0, alive, count, waiting, 0 } end
-- What may be refused comes first; and behind a removal Redis takes every write, even if memory is full.
redis.call("XDEL", stream, "0-0")
if waiting > 0 then
  local names = redis.call("ZRANGE", retries, 0, limit - 1)
  local found = readRetries(names)
  mayDropRetries()
  for i, entry in ipairs(found.entries) do
    local due = redis.call("ZSCORE", retries, found.names[i])
    local id = entry.a:sub(9)
    -- A message that waits in two groups is one message, due when the first of them was; and failed in each by itself.
    local trailer = withoutFailures(entry.t)
    local member = string.char(#id) .. id .. struct.pack("<I8", #entry.p) .. entry.p .. trailer
    if redis.call("ZADD", timeouts, "NX", due, member) == 1 then
      redis.call("RPUSH", order, ${elements === "members" ? "member" : "#id == 16 and addressOf(tonumber(due), id) or member"})
    end
  end
  if #found.unreadable > 0 then redis.call("RPUSH", unreadable, unpack(found.unreadable)) end
  redis.call("ZREM", retries, unpack(names))
  redis.call("HDEL", retrying, unpack(names))
  return { 0, 0, count, waiting - #names, #found.entries }
end
if count > tonumber(limit) then return { 0, 0, count, 0, 0 } end
local rows, ids = redis.call("XRANGE", stream, "-", "+"), {}
for i, row in ipairs(rows) do ids[i] = row[1] end
local groups, isDone = count > 0 and redis.call("XINFO", "GROUPS", stream) or {}, {}
-- What a group that was destroyed has left behind: the others have acknowledged it.
if #groups > 0 then
  for _, id in ipairs(unneededBut(nil, groups, ids, {})) do isDone[id] = true end
end
local payloads, foreign = {}, {}
for i, id in ipairs(ids) do
  local entry = entryOf(rows[i][2])
  if not entry then
    foreign[#foreign + 1] = table.concat(rows[i][2])
  elseif not isDone[id] then
    payloads[#payloads + 1] = entry.p
  end
end
if #foreign > 0 then redis.call("RPUSH", unreadable, unpack(foreign)) end
if #payloads > 0 then redis.call("RPUSH", ready, unpack(payloads)) end
redis.call("UNLINK", stream, retrying)
-- Whoever moves sees that the stream has gone.
redis.call("PUBLISH", channel, "0")
return { 1, 0, 0, 0, #payloads }
`,
    reply: (raw): MakePlainReply =>
      asRow(raw, {
        isPlain: asFlag,
        consumers: asNumber,
        ready: asNumber,
        retrying: asNumber,
        moved: asNumber,
      }),
  });

export const makePlain = byElements(define);
