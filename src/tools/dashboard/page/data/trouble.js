// @ts-check
import { clock, second } from "./format.js";

// What is wrong with Redis itself, as the server tells it: `{ level, kind, since, text }`; see src/tools/view/trouble.ts.
// It is one cause for all queues, so it is said once.

/** What is wrong, in a few words; `now` is the time on the Redis server's clock (epoch ms). */
export function titleOf({ kind, since }, now) {
  if (kind === "refusing") return "Redis refuses every write";
  if (kind === "unlisted") return "The queues could not be listed";
  return since === null || since === undefined
    ? "Redis does not answer"
    : `Redis has not answered since ${clock(since, now, second)}`;
}

/** Whether the numbers are those of before: Redis does not answer. */
export function isSilent(trouble) {
  return trouble?.kind === "silent";
}
