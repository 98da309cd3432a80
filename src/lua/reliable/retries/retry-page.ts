import { keyOf } from "../../fragments/message/key-of.ts";
import { asDeadline, replied } from "../../fragments/message/replied.ts";
import { retry, unpackRetry, unpackRetryName, type Retry } from "../../fragments/failed/retry.ts";
import { asArray, asBuffer, asNumber, asRow } from "../../reply.ts";
import { defineScript } from "../../script.ts";

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
