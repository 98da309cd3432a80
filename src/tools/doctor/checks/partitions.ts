import { facts } from "../../../inside.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import { agree, type CommandLine, type Finding } from "./finding.ts";
import { formatInstant } from "../../view/instants.ts";
import { formatCount, formatDuration } from "../../view/words.js";

const CHECK = "partitions";

/** Checks whether all processes can agree on where the partitions are. */
export function* checkPartitions(
  report: QueueReport,
  commandLine: CommandLine,
): Generator<Finding> {
  const { name, fact, factAt, siteCount } = report;
  if (fact === undefined) return;
  if (fact.servers !== siteCount) {
    yield {
      level: "error",
      check: CHECK,
      queue: name,
      what: `its partitions are on ${formatCount(fact.servers, "server")}, and ${siteCount} ${agree(siteCount, "was", "were")} given`,
      why: "a process with this list is refused; with a list in another order it would look for messages in the wrong place",
      repair: "give every process, and the doctor, the same list of servers in the same order",
    };
  } else if (!factAt.includes(0)) {
    yield {
      level: "error",
      check: CHECK,
      queue: name,
      what: `partition 0 is on server ${factAt[0]} of the list, and belongs on server 0`,
      why: "the order of the servers has changed: a process with this list finds no partitions, and makes new ones",
      repair: "give the servers in their original order",
    };
  } else yield* checkRemains(report, fact, commandLine);
}

function* checkRemains(
  { name, parts }: QueueReport,
  fact: facts.Fact,
  commandLine: CommandLine,
): Generator<Finding> {
  const ordinary = parts.find(({ partition }) => partition === facts.ORDINARY);
  if (ordinary === undefined || fact.from === facts.FROM_ORDINARY) return;
  const { delayed, inList, inStream, retries, hasOpenBatch } = ordinary;
  const remains = delayed + inList + inStream + retries;
  if (remains === 0 && !hasOpenBatch) return;
  yield {
    level: "warning",
    check: CHECK,
    queue: name,
    what: `${formatCount(remains, "message")} in the ordinary queue beside the ${fact.to} partitions: ${delayed} delayed, ${retries} retrying, ${inList + inStream} ready or in flight${hasOpenBatch ? "; and a batch that a process took out and that has not arrived" : ""}`,
    why: "some process that only offers, or a Java process, does not know of the partitions; consumers of the partitions never see these messages",
    repair: `give that process the option; then take in the messages that it left: ${commandLine("partitions", name, ["--finish"])}`,
  };
}

/** Checks whether a change of the number of partitions goes on; `after` was read half a second after `before`. */
export function* checkChange(
  before: QueueReport,
  after: QueueReport,
  commandLine: CommandLine,
): Generator<Finding> {
  const { name, fact, change, stats } = after;
  if (fact === undefined || change === undefined || before.fact === undefined) return;
  const { isWorkedOn, hasHeir, lastAt, now } = change;
  const isHolding = fact.state === "holding";
  const from = fact.from === facts.FROM_ORDINARY ? "the ordinary queue" : `${fact.from}`;
  const what = `the change of the number of partitions from ${from} to ${fact.to} (${fact.state})`;
  const idle = lastAt === undefined ? 0 : now - lastAt;
  if (before.fact.epoch !== fact.epoch || isWorkedOn || before.change?.isWorkedOn === true) {
    const waitsFor = stats?.inFlight ?? 0;
    const isAtRest = before.fact.epoch === fact.epoch && batches(before) === batches(after);
    yield {
      level: isAtRest && idle >= LONG ? "warning" : "notice",
      check: CHECK,
      queue: name,
      what: `${what} is under way${isAtRest ? `, and no message has moved within half a second; ${formatCount(waitsFor, "message")} ${agree(waitsFor, "is", "are")} in flight` : ""}`,
      why: `${isHolding ? NOTHING_READY : SLOW_CALLS}; it waits for messages that live consumers hold in a partition that goes`,
      repair: "let it finish; if it waits for long, look at the handlers that hold messages",
    };
    return;
  }
  const since =
    lastAt === undefined ? "" : ` since ${formatInstant(lastAt)} (${formatDuration(idle)})`;
  const isTransition = facts.isWithOrdinary(fact);
  yield {
    level: isHolding ? "error" : "warning",
    check: CHECK,
    queue: name,
    what: `${what} stands still${since}: no process works on it`,
    why: `${isHolding ? NOTHING_READY : SLOW_CALLS}${isTransition ? "; only setPartitions ends the transition from an ordinary queue" : ""}`,
    repair: `finish it: ${commandLine("partitions", name, ["--finish"])}${isTransition || !hasHeir ? "" : '; the processes that have the queue open should have done so within seconds: read their "error" events'}`,
  };
}

const NOTHING_READY = "nothing becomes ready, and no handler is called, until it has ended";

const SLOW_CALLS =
  "every call for a message first moves that message, and the others stay in the old partitions";

/** Milliseconds; a change rarely moves nothing for so long. */
const LONG = 60_000;

/** The numbers of the last batches that have left each part. */
function batches({ parts }: QueueReport): string {
  return parts.map(({ lastBatch }) => lastBatch).join();
}
