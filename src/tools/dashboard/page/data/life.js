// @ts-check
import { isKnown } from "./format.js";

/**
 * What is known of a message's life, in order: moments `{ what, at, attempt, reason, isFuture }`. `now` is an instant on
 * the Redis server's clock.
 */
export function lifeOf(message, now) {
  const { state, deadline, offeredAt, readyAt, takenAt, heldBackUntil, diedAt, failures } = message;
  const { attempts, reason, host, pid, consumer } = message;
  const isWaiting = state === "delayed" || state === "retrying";
  const moments = [
    { what: "offered", at: offeredAt },
    // While it is retrying, the deadline is that of its next attempt.
    { what: state === "retrying" ? "retry" : "due", at: deadline },
    ...failures.map((failure) => ({ what: "failed", ...failure })),
    { what: "ready", at: readyAt },
    { what: "taken", at: takenAt, attempt: attempts, host, pid, consumer },
    { what: "held back", at: heldBackUntil },
    { what: "died", at: diedAt, reason },
  ].filter(({ at }) => isKnown(at));
  const order = Object.keys(ORDER);
  return moments
    .map((moment) => ({ ...moment, isFuture: moment.at > now }))
    .filter(({ what, isFuture }) => what !== "due" || !isFuture || isWaiting)
    .toSorted((a, b) => a.at - b.at || order.indexOf(a.what) - order.indexOf(b.what));
}

/** The moments in the order in which they can happen at one instant, and the state whose colour each has. */
export const ORDER = {
  offered: "delayed",
  due: "ready",
  ready: "ready",
  taken: "in-flight",
  failed: "retrying",
  retry: "retrying",
  "held back": "retrying",
  died: "dead",
  handled: "handled",
};
