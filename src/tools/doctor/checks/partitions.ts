import { FROM_ORDINARY, ORDINARY, type Fact } from "../../../partitions/ring/fact.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import { agree, count, inBackticks, type Finding } from "./finding.ts";

const CHECK = "partitions";

/** Checks whether all processes can agree on where the partitions are. */
export function* checkPartitions(report: QueueReport): Generator<Finding> {
  const { name, fact, factAt, siteCount } = report;
  if (fact === undefined) return;
  if (fact.servers !== siteCount) {
    yield {
      level: "error",
      check: CHECK,
      queue: name,
      what: `its partitions are on ${count(fact.servers, "server")}, and ${siteCount} ${agree(siteCount, "was", "were")} given`,
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
    why: "some process that only offers, or a Java process, does not know of the partitions; consumers of the partitions never see these messages",
    repair: `give that process the option; then take in the messages that it left: ${setPartitions(name, fact)}`,
  };
}

/** Checks whether a change of the number of partitions goes on; `after` was read half a second after `before`. */
export function* checkChange(before: QueueReport, after: QueueReport): Generator<Finding> {
  const { fact } = after;
  if (fact === undefined || fact.state === "stable" || before.fact === undefined) return;
  const isMoving = before.fact.epoch !== fact.epoch || batches(before) !== batches(after);
  const from = fact.from === FROM_ORDINARY ? "the ordinary queue" : `${fact.from}`;
  yield {
    level: isMoving ? "notice" : "warning",
    check: CHECK,
    queue: after.name,
    what: `the number of partitions is changing from ${from} to ${fact.to} (${fact.state})${isMoving ? "" : ", and no batch has moved within half a second"}`,
    why: isMoving
      ? "every look-up first moves its message to the new partition, so calls are slower until the change is done"
      : "the change waits for messages that consumers hold, or its process has died and no process that transfers or takes is there to finish it; in the state `holding` nothing becomes ready",
    repair: `let it finish; a process that transfers or takes continues it within seconds, and so does: ${setPartitions(after.name, fact)}`,
  };
}

/** The numbers of the last batches that have left each part. */
function batches({ parts }: QueueReport): string {
  return parts.map(({ lastBatch }) => lastBatch).join();
}

function setPartitions(name: string, { to }: Fact): string {
  return inBackticks(`await line.setPartitions(${JSON.stringify(name)}, ${to})`);
}
