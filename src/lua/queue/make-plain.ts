import { addressOf, deadlineOf, idOf } from "../fragments/address.ts";
import { bringBack, dropRetries } from "../places/retry-moves.ts";
import { heldKeyOf, holdKey } from "../places/key-index.ts";
import { waitingRetry } from "../places/retries.ts";
import { clock } from "../fragments/clock.ts";
import { payloadsOf } from "../fragments/collected.ts";
import { consumersOf, groupNames, isAlive } from "../fragments/stream-info.ts";
import { unneededBut } from "../places/settle.ts";
import { entryOf, heldBack } from "../places/stream.ts";
import { packMember } from "../fragments/member.ts";
import { withoutFailures } from "../fragments/failure.ts";
import { putNew } from "../places/delayed.ts";
import { asFlag, asNumber, asRow } from "../reply.ts";
import { defineScript } from "../script.ts";
import { may } from "../fragments/may.ts";
import { wakeUp } from "../fragments/wake-up.ts";

export interface MakePlainReply {
  /** Whether the stream is gone. */
  readonly isPlain: boolean;
  /** How many consumers are alive. Nothing is moved while there are any. */
  readonly consumers: number;
  /** How many entries are left in the stream. Some may be in flight for dead consumers. */
  readonly ready: number;
  /** How many retries are left. The stream stays while there are any. */
  readonly retrying: number;
  /** How many messages this step moved. */
  readonly moved: number;
}

/**
 * Takes one step of making a reliable queue plain.
 *
 * First, up to `limit` retries become delayed messages and keep their deadlines, also those that wait for their turn.
 * Messages that wait go on waiting: a plain queue has lanes as well. Once no retry is left, the messages
 * in the stream go to the LIST and the stream is dropped. That has to be one step, or a process that watches the LIST
 * would move them back: it happens only if the stream has no more than `limit` entries.
 *
 * Nothing happens while a consumer is alive: Redis has seen it within the lease timeout in its name. `timeout`
 * applies to names without one.
 *
 * A retrying message keeps its business key. One that is held back becomes a delayed one that is due when its pause is
 * over. Entries that every group has
 * acknowledged are dropped. Failed attempts are forgotten: a plain queue has none. What a message has collected becomes
 * elements of the LIST; a delayed one keeps it until it is due.
 *
 * No rollback: each message is stored in its new place before it is removed, and all that may be refused is tried
 * before.
 */
export const makePlain = defineScript({
  name: "make-plain",
  keys: [
    "timeouts",
    "order",
    "ready",
    "stream",
    "knownGroups",
    "returned",
    "retries",
    "retrying",
    "unreadable",
    "room",
  ],
  args: ["channel", "limit", "timeout", "elementsAre"],
  needs: [
    addressOf,
    bringBack,
    clock,
    consumersOf,
    deadlineOf,
    dropRetries,
    entryOf,
    groupNames,
    heldBack,
    heldKeyOf,
    holdKey,
    idOf,
    isAlive,
    may,
    packMember,
    payloadsOf,
    putNew,
    unneededBut,
    waitingRetry,
    wakeUp,
    withoutFailures,
  ],
  lua: /* lua */ `
local alive = 0
for _, group in ipairs(groupNames()) do
  for _, consumer in ipairs(consumersOf(group)) do
    if isAlive(consumer, timeout) then alive = alive + 1 end
  end
end
local count, retryCount = redis.call("XLEN", stream), redis.call("ZCARD", retries)
if alive > 0 then return { 0, alive, count, retryCount, 0 } end
-- A removal that Redis may refuse comes first. After one, Redis accepts every write, even if memory is full.
may("XDEL", stream)
-- A message that waits in two groups becomes one message, due with the first. Failures are per group.
local members, dues, elements, isKnown, keyed = {}, {}, {}, {}, {}
local function delay(entry, due)
  local id = idOf(entry.a)
  local member = packMember(id, entry.p, withoutFailures(entry.t or ""))
  local known = isKnown[member] or redis.call("ZSCORE", timeouts, member)
  local kept = not known and redis.call("HGET", room, id)
  if kept and kept:sub(9) == member then known = deadlineOf(kept) end
  local key = heldKeyOf(entry)
  if key then keyed[key] = addressOf(tonumber(known or due), id) end
  if known then return end
  isKnown[member] = due
  members[#members + 1] = member
  dues[#dues + 1] = tonumber(due)
  local isShort = elementsAre ~= "members" and #id == 16
  elements[#elements + 1] = isShort and addressOf(tonumber(due), id) or member
end
-- Behind everything else: the index may be refused, and then a message is without its key.
local function holdKeys()
  for key, address in pairs(keyed) do
    if address:byte(1) == 0 then pcall(holdKey, key, address) end
  end
end
-- Everything behind this that may be refused is tried before the first push.
local function mayStore(list)
  may("ZADD", timeouts)
  may("LTRIM", order)
  if list then may("LTRIM", list) end
end
-- RPUSH may be refused, and the first key may be no LIST: then nothing was pushed. The others were tried.
local function store(unread, payloads)
  if #unread > 0 then redis.call("RPUSH", unreadable, unpack(unread)) end
  for _, chunk in ipairs(chunksOf(payloads)) do redis.call("RPUSH", ready, unpack(chunk)) end
  return #members > 0 and putNew(members, dues, elements)
end
if retryCount > 0 then
  local names = redis.call("ZRANGE", retries, 0, limit - 1)
  local found = readRetries(names)
  for i, entry in ipairs(found.entries) do
    delay(entry, (dueOf(redis.call("ZSCORE", retries, found.names[i]))))
  end
  mayDropRetries()
  mayStore()
  local refusal = store(found.unreadable, {})
  if refusal then return refusal end
  dropRetries(names, #names)
  holdKeys()
  return { 0, 0, count, retryCount - #names, #found.entries }
end
if count > tonumber(limit) then return { 0, 0, count, 0, 0 } end
local rows, ids = redis.call("XRANGE", stream, "-", "+"), {}
for i, row in ipairs(rows) do ids[i] = row[1] end
local groups, isDone = count > 0 and redis.call("XINFO", "GROUPS", stream) or {}, {}
-- Entries that only a destroyed group still needed: the others have acknowledged them.
if #groups > 0 then
  for _, id in ipairs(unneededBut(nil, groups, ids, {})) do isDone[id] = true end
end
local now, delayed, payloads, foreign = clock(), 0, {}, {}
for i, id in ipairs(ids) do
  local entry = entryOf(rows[i][2])
  if not entry then
    foreign[#foreign + 1] = table.concat(rows[i][2])
  elseif not isDone[id] and isHeldBack(entry, now) then
    delay(entry, entry.u)
    delayed = delayed + 1
  elseif not isDone[id] then
    payloads[#payloads + 1] = payloadsOf(entry.p, entry.t or "")
  end
end
-- The processes that move messages see that the stream is gone.
local refusal = wakeUp(0)
if refusal then return refusal end
-- No retry is left.
redis.call("UNLINK", retrying)
mayStore(ready)
refusal = store(foreign, payloads)
if refusal then return refusal end
holdKeys()
redis.call("UNLINK", stream, knownGroups, returned)
return { 1, 0, 0, 0, #payloads + delayed }
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
