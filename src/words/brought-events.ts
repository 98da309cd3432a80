import { squeezed } from "./brought-names.ts";
import { suggest } from "./did-you-mean.ts";

/** The events of a client. */
const EVENTS = ["error", "recovered", "restored"];

/** Listeners may also be told of each other; see `node:events`. */
const OF_NODE = ["newListener", "removeListener"];

/** Names of events of other libraries: BullMQ, Bee-Queue, Agenda, Bull, pg-boss, ioredis. */
const BROUGHT: readonly { readonly names: readonly string[]; readonly wayOut: string }[] = [
  {
    names: ["completed", "succeeded", "success", "complete", "done", "finished"],
    wayOut:
      "messages have no events: with keepHandled, handled(idOrKey) of the queue tells when one was handled; the channel tracing:delayline:handle:asyncEnd tells of each run",
  },
  {
    names: ["failed", "fail", "jobfailed", "stalled", "retrying", "retriesexhausted"],
    wayOut: "the event error tells of each attempt that failed, and onError of subscribe",
  },
  {
    names: ["active", "start", "progress", "added", "waiting", "delayed", "drained", "message"],
    wayOut:
      "messages have no events: the channels of node:diagnostics_channel tell what happens to them",
  },
  {
    names: ["connect", "connected", "ready"],
    wayOut: "it connects by itself; the event recovered tells that Redis is back",
  },
  {
    names: ["close", "closed", "end", "disconnect", "reconnecting"],
    wayOut: "the event error tells that Redis cannot be reached, and close() resolves at the end",
  },
];

/**
 * Checks the name of an event that somebody wants to hear. A listener of another one would wait for ever. Symbols are
 * free.
 *
 * @throws {TypeError} naming the events, and what to use instead.
 */
export function checkEvent(name: unknown): void {
  if (typeof name !== "string" || EVENTS.includes(name) || OF_NODE.includes(name)) return;
  const near = suggest(name, EVENTS);
  const brought = BROUGHT.find(({ names }) => names.includes(squeezed(name)))?.wayOut;
  const wayOut = brought ?? (near && `did you mean ${near}?`);
  throw new TypeError(
    `event must be one of ${EVENTS.join(", ")}, got "${name}"${wayOut === undefined ? "" : `; ${wayOut}`}`,
  );
}
