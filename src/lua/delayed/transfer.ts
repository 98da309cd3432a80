import type { Into } from "../family.ts";
import { defineFragment } from "../fragment.ts";
import { addressOf } from "../fragments/address.ts";
import { asInstant, clock } from "../fragments/clock.ts";
import { asDeadline, LAST_DEADLINE, replied } from "../fragments/deadline.ts";
import { asClaimedAt, claim } from "../fragments/claim.ts";
import { DROP_REASONS, type DropReason } from "../places/drops.ts";
import { appendAll } from "../places/stream.ts";
import { forget } from "../fragments/forget.ts";
import { keysOfRetries } from "../places/key-index.ts";
import { listed, pushAll } from "../places/ready-list.ts";
import { allDue, firstDue } from "../places/due.ts";
import { bringBack, dropRetries } from "../places/retry-moves.ts";
import {
  asBuffer,
  asFlag,
  asNumber,
  asRow,
  asRows,
  asText,
  orNothing,
  type RawReply,
} from "../reply.ts";
import { defineScript, type Script } from "../script.ts";
import { asUntidy, tidyEmpty, untidy, type Untidy } from "./tidy.ts";
import { HELD, IS_PACED, LIST_UNLESS_PACED, paced, STREAM_UNLESS_PACED } from "./paced.ts";
import { CLAIM, lastClaim, unfitness, unpackDue } from "./due-messages.ts";
import { may } from "../fragments/may.ts";
import { wakeUp } from "../fragments/wake-up.ts";

/*
 * A transfer moves up to `limit` due messages out of the ZSET, earliest deadline first. With `grace`, only messages that
 * are overdue by that many milliseconds. With `claim` (0: no; 1: yes, and check before; 2: yes), a run that moves any
 * writes `task` into `mover`, at an instant later than `known` (epoch microseconds). With `mark` (1 or 0), a run that moves
 * any to the LIST sets `listed`.
 *
 * A queue is reliable if its stream exists in Redis. So there are two scripts.
 * `transfer.list` serves processes that know only the plain queue: when something is due it
 * checks for the stream, fills that if it exists, and else the LIST. `transfer.stream` serves processes that know the
 * reliable queue, and also moves due retries.
 *
 * The move asks what a message's trailer demands (the fragment `condition`), and drops the message if that does not hold.
 * This is the only time: a retry is not asked again, so an entry of the stream holds no conditions.
 *
 * No rollback: a message is pushed before it is removed. A refused push (WRONGTYPE, an ACL) has then changed nothing. A
 * stream takes one entry at a time. If it refuses one, the messages before it have moved, and the next run returns the
 * refusal. With a `claim` of 1 it first checks that removing is permitted, before anything is pushed.
 *
 * What a moved message leaves in the insertion order stays, also in that of a queue that is empty now. Tidying removes it:
 * after some transfers, after a sweep, or when the task ends.
 */

/** A message that was due, and was dropped because of a condition. */
export interface DroppedMessage {
  readonly address: Buffer;
  readonly reason: DropReason;
  /** Empty without one. */
  readonly key: string;
}

/** The reply of a transfer or a sweep. */
export interface TransferReply {
  /** How many messages became ready, including retries. */
  readonly moved: number;
  /** Where they went; undefined if nothing was due, since the script did not check for a stream then. */
  readonly wentInto: Into | undefined;
  /**
   * Since when the oldest of them was due (epoch ms): its deadline, or the instant of its offer if that is later and
   * its id contains it. Undefined if none was moved.
   */
  readonly dueSince: number | undefined;
  /** The messages that were dropped. */
  readonly dropped: readonly DroppedMessage[];
  /** How many messages and retries of an unknown layout were set aside. */
  readonly quarantined: number;
  /** The server's time (epoch ms), to the microsecond. */
  readonly serverTime: number;
  /** The earliest deadline of the remaining messages and retries (epoch ms); Infinity if none of them is ever due. */
  readonly next: number;
  /** Whether nothing was due, and another task was the last to claim that it moves. */
  readonly isOutrun: boolean;
  /**
   * Whether the ready LIST has messages for the stream. Only the form "stream" checks, in a sweep or with a `grace`.
   */
  readonly hasListed: boolean;
  /**
   * When a task last claimed that it moves (epoch ms): in this transfer, or, if nothing was due, whenever Redis shows.
   * Undefined if this transfer has moved without a claim, or Redis shows none.
   */
  readonly claimedAt: number | undefined;
  /**
   * Whether the queue has a flow: a rate, or lanes. If so, and this is the form that knows of none, nothing was moved. Undefined
   * if it did not ask.
   */
  readonly isPaced: boolean | undefined;
  /** Of a queue with a flow: for how long the oldest message that was moved had to wait for its turn (ms). */
  readonly waited: number | undefined;
  /** Of a sweep: what there is to tidy. */
  readonly untidy: Untidy | undefined;
  /** Of a sweep, unless the queue is paused: whether the ready LIST holds messages, so that `listed` is set. */
  readonly isListed: boolean | undefined;
  /** Of a sweep: whether the queue is paused. If so, nothing was moved. */
  readonly isPaused: boolean | undefined;
  /** Of a sweep: how many partitions the queue has; undefined for an ordinary queue. */
  readonly fact: string | undefined;
  /** Of a sweep, unless the queue is paused: whether it is reliable, so that its stream exists. */
  readonly isReliable: boolean | undefined;
  /** Of a sweep: how many there are of the two keys that a queue with schedules has; one of them may have been lost. */
  readonly scheduleKeys: number | undefined;
}

/** `quarantineAll(poison)`: moves members of an unknown layout to the unreadable messages. */
const quarantineAll = defineFragment({
  keys: ["timeouts", "unreadable"],
  needs: [may],
  lua: /* lua */ `
local function quarantineAll(poison)
  may("ZREM", timeouts)
  redis.call("RPUSH", unreadable, unpack(poison))
  redis.call("ZREM", timeouts, unpack(poison))
end
`,
});

const KEYS = [
  "timeouts",
  "order",
  "compacted",
  "businessKeys",
  "ready",
  "listed",
  "unreadable",
  "dropped",
  "mover",
  "paused",
  "flow",
  "stream",
  "knownGroups",
  "running",
  "retries",
] as const;

const ARGS = ["known", "mark", "limit", "grace", "claim", "task", "makes", "elementsAre"] as const;

const SHARED = [clock, firstDue, replied, unpackDue];
const SHARED_RARELY = [allDue, lastClaim, listed, quarantineAll, unfitness];

/** Fills the LIST, or the stream if there is one. Leaves retries alone; ignores `makes`. */
const toList = defineScript({
  name: "transfer",
  keys: KEYS,
  args: ARGS,
  needs: [...SHARED, pushAll],
  rarely: [...SHARED_RARELY, addressOf, appendAll, forget],
  lua: /* lua */ `
local now = clock()
local latest = math.floor(now / 1000) - grace
local members, scores, head, isMore = firstDue(timeouts, latest, limit)
if #members == 0 then
  local isOutrun, last = rare().lastClaim(task)
  return { 0, 0, now, head and replied(head), isOutrun, 0, 0, false, {}, last }
end
-- A process that knows only the plain queue fills the stream as well.
${LIST_UNLESS_PACED}
if isMore and isStream then
  members, scores = rare().allDue(timeouts, latest, limit)
elseif isMore then
  -- Without the scores, which only entries and late messages need.
  members = redis.call("ZRANGEBYSCORE", timeouts, "-inf", latest, "LIMIT", 0, limit)
end
local messages, readable, poison, unfit, own, since = unpackDue(members, scores, isStream and rare().addressOf, now)

if claim == "1" then redis.call("ZREMRANGEBYRANK", timeouts, 1, 0) end
if #poison > 0 then rare().quarantineAll(poison) end
if #unfit > 0 then rare().drop(unfit, now) end
local moved, quarantined, gone, refusal = 0, #poison, members, nil
if #messages > 0 then moved, refusal = (isStream and rare().appendAll or pushAll)(messages) end
if moved > 0 then redis.call("ZREMRANGEBYRANK", timeouts, 0, moved - 1) end
if refusal then
  -- If anything has moved, the reply has to say so. The next run returns the refusal.
  if moved + quarantined + #unfit == 0 then return refusal end
  -- Refused messages stay. The index entries of the messages before them point to nothing now, which does no harm.
  gone, own, isMore = poison, {}, true
  for i = 1, moved do gone[#gone + 1] = readable[i] end
  for _, member in ipairs(unfit) do gone[#gone + 1] = member end
end

if elementsAre == "members" then rare().forget(gone) end
-- A refusal leaves entries and elements that point to nothing. A step of tidying removes them, or reports it.
if #own > 0 then redis.pcall("HDEL", businessKeys, unpack(own)) end
if isMore then head = rare().headOf(timeouts) end
if moved > 0 and mark == "1" and not isStream then rare().setListed() end
${CLAIM.trim()}
since = moved > 0 and since < math.huge and replied(since)
return { moved, quarantined, now, head and replied(head), 0, isStream and 2 or 1, 0, since, unfit.rows, claimed }
`,
  reply: asTransfer,
});

/**
 * Moves due messages to the stream, and up to `limit` due retries behind them. If the stream was deleted, `makes` = 1
 * creates it again; `makes` = 0 fills the LIST instead, and leaves retries alone.
 */
const toStream = defineScript({
  name: "transfer-to-stream",
  keys: [...KEYS, "retrying"],
  args: ARGS,
  needs: [...SHARED, addressOf, appendAll],
  rarely: [...SHARED_RARELY, bringBack, dropRetries, forget, keysOfRetries, pushAll],
  lua: /* lua */ `
local now = clock()
local latest = math.floor(now / 1000) - grace
local members, scores, head, isMore = firstDue(timeouts, latest, limit)
local names, dues, retryHead, areMoreRetries = firstDue(retries, latest, limit)
local function nextDue()
  local next = retryHead and math.min(retryHead, head or retryHead) or head
  return next and replied(next)
end
-- Only a task that stands by checks: an active one watches the LIST anyway.
local function hasListed()
  return grace ~= "0" and redis.call("EXISTS", ready) or 0
end
if #members == 0 and #names == 0 then
  local isOutrun, last = rare().lastClaim(task)
  return { 0, 0, now, nextDue(), isOutrun, 0, hasListed(), false, {}, last }
end
${STREAM_UNLESS_PACED}
local isStream = makes == "1" or redis.call("EXISTS", stream) == 1
if not isStream then names, retryHead, areMoreRetries = {}, false, false end
if isMore then members, scores = rare().allDue(timeouts, latest, limit) end
local messages, readable, poison, unfit, own, since = unpackDue(members, scores, isStream and addressOf, now)
if areMoreRetries then names = rare().allDue(retries, latest, limit) end
local found, freed
if #names > 0 then
  found = rare().readRetries(names)
  freed = rare().keysOfRetries(found.entries)
  rare().mayDropRetries()
end
if claim == "1" then redis.call("ZREMRANGEBYRANK", timeouts, 1, 0) end
if #poison > 0 then rare().quarantineAll(poison) end
if #unfit > 0 then rare().drop(unfit, now) end
local moved, quarantined, gone, refusal = 0, #poison, members, nil
if #messages > 0 then moved, refusal = (isStream and appendAll or rare().pushAll)(messages) end
if moved > 0 then redis.call("ZREMRANGEBYRANK", timeouts, 0, moved - 1) end
if refusal then
  -- Refused messages stay. The index entries of the messages before them point to nothing now, which does no harm.
  gone, own, isMore = poison, {}, true
  for i = 1, moved do gone[#gone + 1] = readable[i] end
  for _, member in ipairs(unfit) do gone[#gone + 1] = member end
elseif #names > 0 then
  local back
  back, refusal = rare().bringBack(found)
  if back > 0 then since = math.min(since, dues[1]) end
  moved, quarantined = moved + back, quarantined + #found.unreadable
  areMoreRetries = areMoreRetries or refusal
  for i = 1, refusal and 0 or #freed do own[#own + 1] = freed[i] end
end
-- If anything has moved, the reply has to say so. The next run returns the refusal.
if refusal and moved + quarantined + #unfit == 0 then return refusal end

if #gone > 0 and elementsAre == "members" then rare().forget(gone) end
-- A refusal leaves entries and elements that point to nothing. A step of tidying removes them, or reports it.
if #own > 0 then redis.pcall("HDEL", businessKeys, unpack(own)) end
if isMore then head = rare().headOf(timeouts) end
if areMoreRetries then retryHead = rare().headOf(retries) end
if moved > 0 and mark == "1" and not isStream then rare().setListed() end
${CLAIM.trim()}
since = moved > 0 and since < math.huge and replied(since)
return { moved, quarantined, now, nextDue(), 0, isStream and 2 or 1, isStream and hasListed() or 0, since, unfit.rows, claimed }
`,
  reply: asTransfer,
});

/** A transfer or a sweep. */
type TransferScript<Arg extends string = never> = Script<
  (typeof toStream.keys)[number] | "partitions" | "planning" | "schedules" | "onceEnds",
  (typeof toStream.args)[number] | Arg,
  TransferReply,
  never
>;

/** Moves due messages. */
export const transfer: Readonly<Record<Into, TransferScript>> = { list: toList, stream: toStream };

/** The same at the queue's rate. */
export const pacedTransfer: Readonly<Record<Into, TransferScript<"shares" | "arriving">>> = {
  list: paced(toList, "{ timeouts }"),
  stream: paced(toStream, "{ timeouts, retries }"),
};

/**
 * Moves due messages unless the queue is paused, and also returns whether it is, whether there is something to tidy,
 * whether the queue was given partitions, whether it is reliable, whether it has a rate, and whether it has schedules.
 *
 * A transfer does not check for the pause, which saves a command each time. Its caller sweeps when it hears of a pause.
 */
export const sweep = {
  list: defineSweep(transfer.list, "list"),
  stream: defineSweep(transfer.stream, "stream"),
};

/** The same at the queue's rate. */
export const pacedSweep = {
  list: defineSweep(pacedTransfer.list, "list"),
  stream: defineSweep(pacedTransfer.stream, "stream"),
};

/** Makes the form of a transfer that sweeps: it does what the transfer does, and more. */
function defineSweep<Arg extends string>(
  { name, keys, args, reply, source }: TransferScript<Arg>,
  into: Into,
): TransferScript<Arg> {
  const isPaced = (args as readonly string[]).includes("shares");
  return defineScript({
    name: name.replace("transfer", "sweep"),
    keys: [...keys, "partitions", "planning", "schedules", "onceEnds"],
    args,
    needs: source.needs,
    rarely: [...source.rarely, listed, untidy],
    lua: /* lua */ `
-- Of another type, or without one, the queue is an ordinary one.
local fact = redis.pcall("GET", partitions)
if type(fact) ~= "string" then fact = false end
-- One question for queues that have none of these.
local found = redis.call("EXISTS", paused, planning, schedules, flow, onceEnds)
local isPaused = found > 0 and redis.call("EXISTS", paused) or 0
local hasFlow = found > isPaused and redis.call("EXISTS", flow) or 0
local hasOnce = found > isPaused + hasFlow and redis.call("EXISTS", onceEnds) or 0
local scheduleKeys = found - isPaused - hasFlow - hasOnce
local isPaced = hasFlow == 1 and ${IS_PACED} and 1 or 0
if isPaused == 1 then
  return { 0, 0, clock(), false, 0, 0, 0, false, {}, 0, rare().untidy(elementsAre) + 4 * hasOnce, 1, fact, false, false, scheduleKeys, isPaced }
end
${isPaced ? "" : `if isPaced == 1 then local now = clock() return ${HELD} end`}
local function transfer()
${source.body}
end
local reply = transfer()
if reply.err then return reply end
local isListed = rare().checkListed(task)
${into === "stream" ? "if reply[6] ~= 1 then reply[7] = isListed end" : ""}
reply[11], reply[12], reply[13], reply[14] = rare().untidy(elementsAre) + 4 * hasOnce, 0, fact, isListed
reply[15], reply[16], reply[17] = redis.call("EXISTS", stream), scheduleKeys, isPaced
return reply
`,
    reply,
  });
}

function asTransfer(raw: RawReply): TransferReply {
  return asRow(raw, {
    moved: asNumber,
    quarantined: asNumber,
    serverTime: asInstant,
    next: asNextDeadline,
    isOutrun: asFlag,
    wentInto: (number) => WENT_INTO[asNumber(number)],
    hasListed: asFlag,
    dueSince: orNothing(asDeadline),
    dropped: (rows) => asRows(rows, { address: asBuffer, reason: asDropReason, key: asText }),
    claimedAt: asClaimedAt,
    untidy: orNothing(asUntidy),
    isPaused: orNothing(asFlag),
    fact: orNothing(asText),
    isListed: orNothing(asFlag),
    isReliable: orNothing(asFlag),
    scheduleKeys: orNothing(asNumber),
    isPaced: orNothing(asFlag),
    waited: orNothing(asNumber),
  });
}

/** A message with a score beyond all deadlines (+inf, Java's Long.MAX_VALUE) is never due. */
function asNextDeadline(raw: RawReply | undefined): number {
  const next = orNothing(asDeadline)(raw) ?? Infinity;
  return next > LAST_DEADLINE ? Infinity : next;
}

function asDropReason(raw: RawReply | undefined): DropReason {
  return DROP_REASONS[asNumber(raw) - 1] ?? "onlyIf";
}

/** The meaning of `wentInto` in a reply. */
const WENT_INTO: readonly (Into | undefined)[] = [undefined, "list", "stream"];

/**
 * Announces that a transfer task ends, if that task moved messages last: deletes `mover`, and wakes all tasks. Returns
 * whether the task was the last mover. Brings `listed` in step, and drops the insertion order of an empty queue unless
 * another task moves: this may have been the queue's last task.
 */
export const retire = defineScript({
  name: "retire",
  keys: ["mover"],
  args: ["channel", "task"],
  needs: [claim, listed, tidyEmpty, wakeUp],
  lua: /* lua */ `
checkListed(task)
local last = readClaim()
if last and last ~= task then return 0 end
if last then
  local refusal = wakeUp(0)
  if refusal then return refusal end
  redis.call("DEL", mover)
end
tidyEmpty()
return last and 1 or 0
`,
  reply: asFlag,
});
