import { clock } from "../fragments/clock.ts";
import {
  asDeadline,
  deadlineAfter,
  earliestDue,
  LAST_DEADLINE,
  replied,
} from "../fragments/deadline.ts";
import { keyOf } from "../fragments/member.ts";
import { retry, unpackRetry, unpackRetryName, waitingFor, type Retry } from "../fragments/retry.ts";
import { asArray, asBuffer, asFlags, asNumber, asRow, asText } from "../reply.ts";
import { defineScript } from "../script.ts";

/** A retry of a message in one group. */
export interface WaitingRetry extends Retry {
  readonly group: string;
  /** When it is due (epoch ms). */
  readonly due: number;
}

/** Returns the retries of the message with the address `wanted`, one for each group. O(log N) for each group. */
export const getRetries = defineScript({
  name: "get-retries",
  keys: ["stream", "retries", "retrying"],
  args: ["wanted"],
  needs: [replied, waitingFor],
  lua: /* lua */ `
local found = {}
local names, dues, owners = waitingFor(wanted)
for i, name in ipairs(names) do
  local value = redis.call("HGET", retrying, name)
  if value then found[#found + 1] = { owners[i], replied(dues[i]), value } end
end
return found
`,
  reply: (raw): WaitingRetry[] =>
    asArray(raw).flatMap((row) => {
      const { value, ...waiting } = asRow(row, { group: asText, due: asDeadline, value: asBuffer });
      const unpacked = unpackRetry(value);
      return unpacked === undefined ? [] : [{ ...waiting, ...unpacked }];
    }),
});

/** A retry of a message in one group. */
export interface NamedRetry extends Retry {
  readonly address: Buffer;
  readonly group: string;
  /** When it is due (epoch ms). */
  readonly due: number;
}

/** The retries with the first of the given names. */
export interface RetryPage {
  /** How many of the names were looked up. */
  readonly lookedUp: number;
  readonly retries: readonly NamedRetry[];
}

/**
 * Returns the retries with these names; with a `key`, only those of messages with that business key. Stops after about
 * `maxBytes` of values; `lookedUp` says how far it came. O(log N) for each name.
 */
export const retryPage = defineScript({
  name: "retry-page",
  keys: ["retries", "retrying"],
  args: ["key", "maxBytes"],
  each: ["name"],
  needs: [keyOf, replied, retry],
  lua: /* lua */ `
local found, lookedUp, size = {}, 0, 0
for each row do
  if size >= tonumber(maxBytes) then break end
  local due, value = redis.call("ZSCORE", retries, name), redis.call("HGET", retrying, name)
  local waiting = due and unpackRetry(value)
  size = size + #(value or "")
  if waiting and (key == "" or keyOf(waiting.t) == key) then
    found[#found + 1] = { name, replied(tonumber(due)), value }
  end
  lookedUp = lookedUp + 1
end
return { lookedUp, found }
`,
  reply: (raw): RetryPage => {
    const { lookedUp, rows } = asRow(raw, { lookedUp: asNumber, rows: asArray });
    return {
      lookedUp,
      retries: rows.flatMap((row) => {
        const { name, due, value } = asRow(row, {
          name: asBuffer,
          due: asDeadline,
          value: asBuffer,
        });
        const named = unpackRetryName(name);
        const waiting = unpackRetry(value);
        return named && waiting ? [{ ...named, due, ...waiting }] : [];
      }),
    };
  },
});

/**
 * Removes messages from the retries of every group; returns for each whether it was there. `wanted` is an address. A
 * message that is in flight for another group stays in flight.
 *
 * Must not be sent twice: the reply says what this run has done.
 */
export const removeRetries = defineScript({
  name: "remove-retries",
  keys: ["stream", "retries", "retrying"],
  args: [],
  each: ["wanted"],
  needs: [waitingFor],
  lua: /* lua */ `
local flags = {}
-- Try first whether HDEL is permitted. If it failed after ZREM, the message would stay in the HASH, where nothing
-- finds it.
redis.call("HDEL", retrying, "delayline: no such field")
for each row do
  local names = waitingFor(wanted)
  flags[#flags + 1] = 0
  if #names > 0 then
    redis.call("ZREM", retries, unpack(names))
    -- A member of the ZSET without a value in the HASH is not a message. A foreign program wrote it.
    if redis.call("HDEL", retrying, unpack(names)) > 0 then flags[#flags] = 1 end
  end
end
return flags
`,
  reply: asFlags,
});

/**
 * Makes a retrying message due at another time, for every group that it waits for. Returns when it is due, for the
 * first of its groups, or undefined if it is not retrying.
 *
 * It is due in `delay` milliseconds or at `deadline`; the other argument is empty. If both are empty it is due now;
 * if it was due before, its time stays.
 */
export const rescheduleRetries = defineScript({
  name: "reschedule-retries",
  keys: ["stream", "timeouts", "retries", "retrying"],
  args: ["channel", "wanted", "delay", "deadline"],
  needs: [clock, deadlineAfter, earliestDue, replied, waitingFor],
  lua: /* lua */ `
local names, dues = waitingFor(wanted)
local now = clock() / 1000
local earliest = earliestDue()
local due = tonumber(deadline) or delay ~= "" and deadlineAfter(now, delay)
local first, changes = math.huge, {}
for i, name in ipairs(names) do
  -- A member of the ZSET without a value in the HASH is not a message. A foreign program wrote it.
  if redis.call("HEXISTS", retrying, name) == 1 then
    local own = due or math.min(dues[i], math.floor(now))
    changes[#changes + 1] = own
    changes[#changes + 1] = name
    first = math.min(first, own)
  end
end
if #changes == 0 then return false end
-- Timers are armed for the earliest message. Only an earlier one needs a wake-up. Publish first: if that is refused,
-- nothing has changed. Nobody can look before the script has ended.
redis.call("ZADD", retries, "XX", 0, "delayline: no such member")
if first < earliest then redis.call("PUBLISH", channel, first) end
redis.call("ZADD", retries, "XX", unpack(changes))
return replied(first)
`,
  reply: (raw) => (raw === null ? undefined : asDeadline(raw)),
});

/** Removes all retries; returns how many. Redis frees their memory in the background. */
export const clearRetries = defineScript({
  name: "clear-retries",
  keys: ["retries", "retrying"],
  args: [],
  lua: /* lua */ `
local count = redis.call("ZCARD", retries)
redis.call("UNLINK", retries, retrying)
return count
`,
  reply: asNumber,
});

/** Returns the number of delayed messages and retries at one instant, so that none is counted twice. O(1). */
export const sizeWithRetries = defineScript({
  name: "size-with-retries",
  keys: ["timeouts", "retries"],
  args: [],
  lua: /* lua */ `return redis.call("ZCARD", timeouts) + redis.call("ZCARD", retries)`,
  reply: asNumber,
});

/**
 * Returns when the first of all delayed messages and retries is due, in epoch milliseconds: Infinity beyond the last
 * legal deadline, undefined if there are none.
 */
export const nextDue = defineScript({
  name: "next-due",
  keys: ["timeouts", "retries"],
  args: [],
  needs: [earliestDue, replied],
  lua: /* lua */ `
local due = earliestDue()
return due and replied(due) or false
`,
  reply: (raw) => {
    if (raw === null) return undefined;
    const due = asDeadline(raw);
    return due > LAST_DEADLINE ? Infinity : due;
  },
});
