import type { QueueReport } from "../looks/queue-report.ts";
import type { Finding } from "./finding.ts";
import { inBackticks } from "./repair.ts";
import { agree, count } from "./words.ts";

/** Checks whether somebody takes the ready messages of a plain queue; `after` was read half a second after `before`. */
export function* checkBacklog(before: QueueReport, after: QueueReport): Generator<Finding> {
  const [was, is] = [before.stats, after.stats];
  if (was?.kind !== "plain" || is?.kind !== "plain" || is.isPaused) return;
  const { ready } = is;
  if (was.ready === 0 || ready < was.ready) return;
  const { name, takers, strangers } = after;
  const grown = ready - was.ready;
  const growth = grown === 0 ? "none was taken" : `${grown} more came than were taken`;
  const what = `${count(ready, "message")} ${agree(ready, "is", "are")} ready, ${growth} within half a second`;
  if (takers === 0) {
    const others =
      strangers === 0
        ? ""
        : `; ${count(strangers, "connection")} of other programs ${agree(strangers, "waits", "wait")} at keys that Redis does not name`;
    yield {
      level: "warning",
      check: "no-consumer",
      queue: name,
      what: `${what}, and no connection of this library waits for ${agree(ready, "it", "them")}${others}`,
      why: "ready messages stay in memory until somebody takes them",
      repair: `start a consumer, with the same database and keyPrefix as the producers: ${inBackticks(`line.getBlockingQueue(${JSON.stringify(name)}).subscribe(...)`)}`,
    };
  } else if (ready >= MANY) {
    yield {
      level: "warning",
      check: "backlog",
      queue: name,
      what,
      why: "consumers are too slow or stuck: messages are taken later and later",
      repair:
        "start more consumers, or raise concurrency; check whether the services that the handlers call reply",
    };
  }
}

/** Fewer ready messages may come and go at any moment. */
const MANY = 100;
