import type { QueueStats } from "../../observe/queue-stats.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import type { Finding } from "./finding.ts";
import { quoted } from "./repair.ts";
import { count, instant, inWords } from "./words.ts";

/** Whether what is due is moved. */
export function* checkTransfer(report: QueueReport): Generator<Finding> {
  const { stats } = report;
  if (stats === undefined) return;
  if (stats.isPaused) yield paused(report, stats);
  else {
    yield* checkOverdue(report, stats);
    yield* checkListeners(report, stats);
  }
}

function paused({ name, parts }: QueueReport, stats: QueueStats): Finding {
  const late = lateness(stats);
  const commands = parts
    .filter(({ partition }) => parts.length === 1 || partition >= 0)
    .map(
      ({ keys, site }) =>
        `redis-cli DEL ${quoted(site.keyPrefix + keys.paused)}; redis-cli PUBLISH ${quoted(keys.channel)} 0`,
    );
  return {
    level: "warning",
    check: "paused",
    queue: name,
    what: `the queue is paused; ${count(stats.overdue, "message")} ${stats.overdue === 1 ? "is" : "are"} due${late > 0 ? `, the first for ${inWords(late)}` : ""}`,
    why: "nothing is moved and nothing is taken until somebody lets it go on; offers are accepted",
    repair: `npx delayline resume ${quoted(name)}${commands.length === 1 ? `, or ${commands[0]}` : ""}`,
  };
}

function* checkOverdue({ name, listeners }: QueueReport, stats: QueueStats): Generator<Finding> {
  const late = lateness(stats);
  if (late <= LATE) return;
  const since = instant(stats.nextDeadline as number);
  const partition = stats.perPartition
    .filter((one) => (one.nextDeadline ?? Infinity) < stats.serverTime - LATE)
    .map((one) => one.partition);
  const where =
    partition.length === 0 || partition.length === stats.perPartition.length
      ? ""
      : `, in partition ${partition.join(", ")}`;
  yield {
    level: "error",
    check: "overdue",
    queue: name,
    what: `${count(stats.overdue, "message")} ${stats.overdue === 1 ? "is" : "are"} overdue, the first since ${since} (${inWords(late)})${where}`,
    why: "nobody moves what is due, so nobody can take it",
    repair:
      listeners === 0
        ? `start a process that opens the queue, such as your worker: it moves what is overdue at once`
        : `processes listen, but do not move: their "error" events name Redis's reply (NOPERM, ERR, WRONGTYPE, READONLY, OOM); processes with transfer: false move nothing`,
  };
}

function* checkListeners(
  { name, listeners, takers }: QueueReport,
  stats: QueueStats,
): Generator<Finding> {
  if (listeners !== 0) return;
  if ((takers ?? 0) > 0) {
    yield {
      level: "warning",
      check: "deaf",
      queue: name,
      what: `${count(takers ?? 0, "connection")} ${takers === 1 ? "takes" : "take"} from the queue, and nobody has subscribed to its channel`,
      why: "wake-ups do not arrive: messages are up to a second late, and a pause is heard of late",
      repair: `allow the channel: ACL SETUSER <user> ${quoted("&redisson_delay_queue_channel:*")}; a proxy between must pass SUBSCRIBE`,
    };
    return;
  }
  const waiting = stats.delayed + stats.retries;
  if (waiting === 0) return;
  yield {
    level: stats.overdue > 0 ? "error" : "warning",
    check: "no-transfer",
    queue: name,
    what: `no process moves this queue: nobody hears its channel, and ${count(waiting, "message")} ${waiting === 1 ? "waits" : "wait"} in it, due ${waiting === 1 ? "" : "from "}${instant(stats.nextDeadline ?? NaN)}${waiting === 1 ? "" : " on"}`,
    why: "a message becomes ready only if some process has the queue open, without transfer: false",
    repair:
      "start your worker; or in any process: line.getDelayedQueue(name), with the name of the queue",
  };
}

/** How many milliseconds ago the first deadline was; negative if it is to come. */
function lateness({ nextDeadline, serverTime }: QueueStats): number {
  return nextDeadline === undefined ? -Infinity : serverTime - nextDeadline;
}

/** Milliseconds. A task that stands by, or sweeps every second, has moved it by then. */
const LATE = 5000;
