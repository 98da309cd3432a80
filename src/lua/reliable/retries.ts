import { countDue } from "../places/due.ts";
import { asDeadline, replied } from "../fragments/deadline.ts";
import { readTrailer } from "../fragments/trailer.ts";
import {
  retriesOf,
  retryBytes,
  retryOf,
  unpackRetry,
  unpackRetryName,
  waitingRetry,
  type Retry,
} from "../places/retries.ts";
import { asArray, asBuffer, asNumber, asRow, asText } from "../reply.ts";
import { defineScript } from "../script.ts";

/** A retry of a message in one group. */
export interface GroupRetry extends Retry {
  readonly group: string;
  /** When it is due (epoch ms). */
  readonly due: number;
}

/** Returns the retries of the message with the address `wanted`, the earliest first. O(log N) for each group. */
export const getRetries = defineScript({
  name: "get-retries",
  keys: ["stream"],
  args: ["wanted"],
  needs: [replied, retriesOf, retryBytes],
  lua: /* lua */ `
local found = {}
for i, one in ipairs(retriesOf(wanted)) do found[i] = { one.g, replied(one.due), packRetry(one) } end
return found
`,
  reply: (raw): GroupRetry[] =>
    asArray(raw).flatMap((row) => {
      const { value, ...rest } = asRow(row, { group: asText, due: asDeadline, value: asBuffer });
      const unpacked = unpackRetry(value);
      return unpacked === undefined ? [] : [{ ...rest, ...unpacked }];
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
  needs: [readTrailer, replied, retryOf, waitingRetry],
  lua: /* lua */ `
local found, lookedUp, size = {}, 0, 0
for each row do
  if size >= tonumber(maxBytes) then break end
  local due, value = redis.call("ZSCORE", retries, name), redis.call("HGET", retrying, name)
  local one = due and unpackRetry(value)
  size = size + #(value or "")
  if one and (key == "" or readTrailer(one.t) == key) then
    found[#found + 1] = { name, replied((dueOf(due))), value }
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
        const unpacked = unpackRetry(value);
        return named && unpacked ? [{ ...named, due, ...unpacked }] : [];
      }),
    };
  },
});

/**
 * Removes all retries; returns how many. Redis frees their memory in the background. Entries of the index that point to
 * them stay, if there are other messages that may hold keys; tidying removes them.
 */
export const clearRetries = defineScript({
  name: "clear-retries",
  keys: ["businessKeys", "retries", "retrying"],
  args: [],
  needs: [countDue],
  lua: /* lua */ `
local count = redis.call("ZCARD", retries)
redis.call("UNLINK", retries, retrying, countDue(retries) > 0 and retries or businessKeys)
return count
`,
  reply: asNumber,
});

/** Returns the number of delayed messages and retries at one instant, so that none is counted twice. O(1). */
export const sizeWithRetries = defineScript({
  name: "size-with-retries",
  keys: ["timeouts"],
  args: [],
  needs: [countDue],
  lua: /* lua */ `return countDue()`,
  reply: asNumber,
});
