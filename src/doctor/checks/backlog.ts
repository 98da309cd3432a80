import type { QueueReport } from "../looks/queue-report.ts";
import type { Finding } from "./finding.ts";
import { count } from "./words.ts";

/** Whether somebody takes what is ready of a plain queue; `after` was seen a moment after `before`. */
export function* checkBacklog(before: QueueReport, after: QueueReport): Generator<Finding> {
  const [was, is] = [before.stats, after.stats];
  if (was?.kind !== "plain" || is?.kind !== "plain" || is.isPaused) return;
  if (was.ready === 0 || is.ready < was.ready) return;
  const { name, takers, strangers } = after;
  const grown = is.ready - was.ready;
  const growth = grown === 0 ? "none was taken" : `${grown} more came than were taken`;
  if (takers === 0) {
    yield {
      level: "warning",
      check: "no-consumer",
      queue: name,
      what: `${count(is.ready, "message")} ${is.ready === 1 ? "is" : "are"} ready, ${growth} within half a second, and no connection of ours waits for ${is.ready === 1 ? "it" : "them"}${strangers === 0 ? "" : `; ${count(strangers, "connection")} of other programs ${strangers === 1 ? "waits" : "wait"} for something that Redis does not name`}`,
      why: "ready messages lie in memory until somebody takes them",
      repair: `start a consumer: line.getBlockingQueue(${JSON.stringify(name)}).subscribe(...); with the same database and keyPrefix as the producers`,
    };
  } else if (is.ready >= MANY) {
    yield {
      level: "warning",
      check: "backlog",
      queue: name,
      what: `${count(is.ready, "message")} ${is.ready === 1 ? "is" : "are"} ready, and ${growth} within half a second`,
      why: "consumers are too slow or stuck: messages are taken ever later",
      repair: "start more consumers, or raise concurrency; does what the handlers call reply?",
    };
  }
}

/** Fewer come and go in a moment. */
const MANY = 100;
