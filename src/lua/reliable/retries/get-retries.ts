import { asDeadline, replied } from "../../fragments/message/replied.ts";
import { unpackRetry, type Retry } from "../../fragments/failed/retry.ts";
import { waitingFor } from "../../fragments/failed/waiting-for.ts";
import { asArray, asBuffer, asRow, asText } from "../../reply.ts";
import { defineScript } from "../../script.ts";

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
      const retry = unpackRetry(value);
      return retry === undefined ? [] : [{ ...waiting, ...retry }];
    }),
});
