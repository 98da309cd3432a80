import { FROM_ORDINARY, ORDINARY, type Fact } from "../../partitions/ring/fact.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import type { Finding } from "./finding.ts";
import { count } from "./words.ts";

const CHECK = "partitions";

/** Whether all processes can agree on where the partitions are. */
export function* checkPartitions(report: QueueReport): Generator<Finding> {
  const { name, fact, factAt, siteCount } = report;
  if (fact === undefined) return;
  if (fact.servers !== siteCount) {
    yield {
      level: "error",
      check: CHECK,
      queue: name,
      what: `its partitions are on ${count(fact.servers, "server")}, and ${siteCount} ${siteCount === 1 ? "was" : "were"} given`,
      why: "a process with this list is refused; with a list of another order it would look for messages in the wrong place",
      repair:
        "give the same list of servers, in the same order, to every process and to the doctor",
    };
  } else if (!factAt.includes(0)) {
    yield {
      level: "error",
      check: CHECK,
      queue: name,
      what: `partition 0 is on server ${factAt[0]} of the list, and belongs on server 0`,
      why: "the list of servers has another order than it had: a process with this list finds no partitions, and makes new ones",
      repair: "give the servers in the order in which they were given at first",
    };
  } else yield* checkRemains(report, fact);
}

function* checkRemains({ name, parts }: QueueReport, fact: Fact): Generator<Finding> {
  const ordinary = parts.find(({ partition }) => partition === ORDINARY);
  if (ordinary === undefined || fact.from === FROM_ORDINARY) return;
  const { delayed, listed, streamed, retries } = ordinary;
  const remains = delayed + listed + streamed + retries;
  if (remains === 0) return;
  yield {
    level: "warning",
    check: CHECK,
    queue: name,
    what: `${count(remains, "message")} in the ordinary queue beside the ${fact.to} partitions: ${delayed} delayed, ${retries} retrying, ${listed + streamed} ready or in flight`,
    why: "a process runs without the option `partitions`; whoever consumes the partitions never sees these",
    repair: setPartitions(name, fact, "give that process the option; then take in what it left:"),
  };
}

/** A change of their number that does not go on; `after` was seen a moment after `before`. */
export function* checkChange(before: QueueReport, after: QueueReport): Generator<Finding> {
  const { fact } = after;
  if (fact === undefined || fact.state === "stable" || before.fact === undefined) return;
  const isMoving = before.fact.epoch !== fact.epoch || batches(before) !== batches(after);
  const from = fact.from === FROM_ORDINARY ? "the ordinary queue" : `${fact.from}`;
  yield {
    level: isMoving ? "notice" : "warning",
    check: CHECK,
    queue: after.name,
    what: `the number of partitions is being changed from ${from} to ${fact.to} (${fact.state})${isMoving ? "" : ", and no batch was brought over for half a second"}`,
    why: isMoving
      ? "every look-up brings a message over first, so calls are slower meanwhile"
      : "the process that changed it has died, or waits for what a consumer has in hand; with `holding` nothing becomes ready",
    repair: setPartitions(after.name, fact, "any process goes on with it:"),
  };
}

/** The numbers of the last batches that have left each part. */
function batches({ parts }: QueueReport): string {
  return parts.map(({ lastBatch }) => lastBatch).join();
}

function setPartitions(name: string, { to }: Fact, introduction: string): string {
  return `${introduction} await line.setPartitions(${JSON.stringify(name)}, ${to})`;
}
