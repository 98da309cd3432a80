import type { ReliableQueue, Revoked } from "../../../index.ts";
import type { InspectedQueue } from "../../view/inspector.ts";
import { formatCount } from "../../view/words.js";
import { parseDuration, UsageError } from "../session/arguments.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { formatInstant } from "../../view/instants.ts";
import { numberColumn, quoted } from "../session/output.ts";
import { confirm, outcome } from "../session/session.ts";

export const revoke = defineCommand({
  usage: "revoke <queue> <id or key>... [--wait <duration>]",
  help: `Stops messages of a reliable queue wherever they are: delayed, retrying, ready, running or
dead. They never begin again. A handler that runs is told by its delivery's signal, and what it
settles counts for nothing. Asks first, and says what it will stop. If some are gone already, the
others are revoked, and the exit code is 5.`,
  words: [2, 1000],
  options: {
    ...CHANGING,
    reason: { type: "string", value: "<text>" },
    wait: { type: "string", value: "<duration>" },
  },
  optionHelp: {
    ...CHANGING_HELP,
    reason: "tells the handlers that run why",
    wait: "waits for so long until the handlers have ended",
  },
  async run(session, [name = "", ...wanted], values) {
    const { output, signal, isJson } = session;
    const { reason, wait } = values;
    if (reason === "" || (reason?.length ?? 0) > 500)
      throw new UsageError("give a --reason of 1 to 500 characters");
    const queue = reliableOf(await session.open(name));
    const asked = [...new Set(wanted)];
    const stages = await Promise.all(asked.map((one) => queue.stage(one, { signal })));
    const there = asked.filter((_, i) => isThere(stages[i]));
    for (const [i, one] of asked.entries()) {
      const { handledAt } = stages[i] ?? {};
      const what = handledAt ? `was handled at ${formatInstant(handledAt.getTime())}` : "is gone";
      if (!isThere(stages[i])) output.say(`${quoted(one)} ${what}.`);
    }
    if (there.length === 0) return EXIT.nothing;
    const what = `${formatCount(there.length, "message")} of queue ${quoted(name)}`;
    const change = `revoke ${what} (${countsOf(stages)})`;
    if (!(await confirm(session, change, values))) return outcome(there.length, asked);
    const options = {
      signal,
      ...(reason !== undefined && { reason }),
      ...(wait !== undefined && { wait: parseDuration("--wait", wait) }),
    };
    const revoked = await Promise.all(there.map((one) => queue.revoke(one, options)));
    for (const [i, one] of revoked.entries()) {
      const { stage, id, hasEnded } = one;
      if (isJson) await output.json({ queue: name, revoked: there[i], stage, id, hasEnded });
      else {
        const runsOn = hasEnded ? "" : "; its handler may still run";
        await output.print(`${quoted(there[i] ?? "")} was ${stage}${runsOn}.`);
      }
    }
    const count = revoked.filter(({ stage }) => stage !== "gone").length;
    return outcome(count, asked);
  },
});

export const running = defineCommand({
  usage: "running <queue>",
  help: `Lists the messages of a reliable queue that consumers have: since when, which attempt, and in
which process. What a consumer holds back in strict order is left out.`,
  words: [1, 1],
  options: {},
  optionHelp: {},
  async run(session, [name = ""]) {
    const { output, signal, isJson } = session;
    const queue = reliableOf(await session.open(name));
    const rows: string[][] = [];
    let count = 0;
    for await (const one of queue.running({ signal })) {
      count++;
      const { id, key = "", group, consumer, host, pid, since, attempt } = one;
      if (isJson) await output.json({ queue: name, ...one });
      else {
        const process = host === undefined ? consumer : `${host}/${pid}`;
        rows.push([id, key, group, process, formatInstant(since.getTime()), String(attempt)]);
      }
    }
    if (rows.length > 0) await output.table(COLUMNS, rows);
    if (count === 0) output.say(`No message of queue ${quoted(name)} is running.`);
    return count > 0 ? EXIT.done : EXIT.nothing;
  },
});

const COLUMNS = [
  { title: "ID" },
  { title: "KEY", canShrink: true },
  { title: "GROUP", canShrink: true },
  { title: "PROCESS", canShrink: true },
  { title: "SINCE" },
  numberColumn("attempt"),
];

/** @throws {UsageError} if the queue is plain. */
function reliableOf({ name, reliable }: InspectedQueue): ReliableQueue<Uint8Array> {
  if (reliable !== undefined) return reliable;
  throw new UsageError(
    `queue ${quoted(name)} is plain: its ready messages have no ids, and are gone once they are taken`,
  );
}

/** Whether there is something to revoke. */
function isThere(found: Revoked | undefined): boolean {
  return found !== undefined && found.stage !== "gone" && found.stage !== "handled";
}

/** How many messages are in each stage. */
function countsOf(found: readonly Revoked[]): string {
  const counts = new Map<string, number>();
  for (const one of found)
    if (isThere(one)) counts.set(one.stage, (counts.get(one.stage) ?? 0) + 1);
  return Array.from(counts, ([stage, count]) => `${count} ${stage}`).join(", ");
}
