import type { InspectedQueue } from "../../view/inspector.ts";
import { messagesIn } from "../../view/locate.ts";
import { escapeControl } from "../../view/text.ts";
import { parseDuration, UsageError } from "../session/arguments.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT, type ExitCode } from "../session/exit.ts";
import { numberColumn, quoted } from "../session/output.ts";
import { confirm, type Session } from "../session/session.ts";
import { formatInstant } from "../../view/instants.ts";
import { formatCount, formatDuration } from "../../view/words.js";
import { changeWaiting } from "../../view/change.ts";

export const overdue = defineCommand({
  usage: "overdue <queue> [--release | --drop --older-than <duration>]",
  help: `Counts the messages and retries of a queue that are due and were not moved, by how late they
are. --release resumes the queue: all of them come at once, in order. --drop removes those that
are late by more than --older-than, and leaves the queue paused: what is left comes when it is
resumed. Drop while the queue is paused, or they come meanwhile.`,
  words: [1, 1],
  options: {
    ...CHANGING,
    release: { type: "boolean" },
    drop: { type: "boolean" },
    "older-than": { type: "string", value: "<duration>" },
  },
  optionHelp: {
    ...CHANGING_HELP,
    release: "resumes the queue, so that all overdue messages come at once",
    drop: "removes the overdue messages that are late by more than --older-than",
    "older-than": "drops what is late by more than this, such as 1h",
  },
  async run(session, [name = ""], { "older-than": olderThan, release, drop, ...values }) {
    if (release && drop) throw new UsageError("give either --release or --drop");
    if ((drop === true) !== (olderThan !== undefined))
      throw new UsageError("give --drop together with --older-than");
    const age = olderThan === undefined ? 0 : parseDuration("--older-than", olderThan);
    const queue = await session.open(name);
    if (release) return await releaseAll(session, queue, values);
    if (drop) return await dropOlder(session, queue, age, values);
    return await count(session, queue);
  },
});

/** Spans of lateness that are counted apart: later than these, in milliseconds. */
const LATE = [0, 60_000, 3_600_000, 86_400_000, 7 * 86_400_000];

async function count(session: Session, queue: InspectedQueue): Promise<ExitCode> {
  const { output, isJson, signal } = session;
  const { name, messages, stats } = queue;
  const { overdue: total, nextDeadline = NaN, serverTime, isPaused, pauseReason } = stats;
  const now = Math.floor(serverTime);
  const late: { readonly laterThan: number; readonly count: number }[] = [];
  let rest = total;
  for (const [i, laterThan] of LATE.entries()) {
    const before = LATE[i + 1];
    const step = before === undefined ? 0 : before - laterThan;
    const from = now + 1 - laterThan - step;
    const forecast = step > 0 && (await messages.forecast({ from, step, count: 1, signal }));
    // What is left is later than all others.
    const some = forecast ? Math.min(rest, forecast.counts[0] ?? 0) : rest;
    late.unshift({ laterThan, count: some });
    rest -= some;
  }
  if (isJson) {
    await output.json({ queue: name, overdue: total, nextDeadline, isPaused, pauseReason, late });
  } else if (total === 0) {
    output.say(`No message of queue ${quoted(name)} is overdue.`);
  } else {
    const rows = late
      .filter(({ count: some }) => some > 0)
      .map(({ laterThan, count: some }) => [
        laterThan === 0
          ? `up to ${formatDuration(LATE[1] ?? 0)}`
          : `more than ${formatDuration(laterThan)}`,
        formatCount(some),
      ]);
    await output.table([{ title: "LATE BY" }, numberColumn("MESSAGES")], rows);
    const why = pauseReason === undefined ? "" : `: ${escapeControl(pauseReason)}`;
    output.say(
      `${formatCount(total, "message")} overdue, the first since ${formatInstant(nextDeadline)}. The queue is ${isPaused ? `paused${why}` : "not paused"}.`,
    );
  }
  return total > 0 ? EXIT.done : EXIT.nothing;
}

type Sureness = { readonly yes?: boolean; readonly "dry-run"?: boolean };

async function releaseAll(
  session: Session,
  { name, messages, stats }: InspectedQueue,
  values: Sureness,
): Promise<ExitCode> {
  const what = formatCount(stats.overdue, "overdue message");
  const change = `resume queue ${quoted(name)}, and let ${what} come`;
  if (!(await confirm(session, change, values))) return EXIT.done;
  await messages.resume({ signal: session.signal });
  if (session.isJson) await session.output.json({ queue: name, released: stats.overdue });
  else await session.output.print(`Resumed queue ${quoted(name)}: ${what} may come.`);
  return EXIT.done;
}

async function dropOlder(
  session: Session,
  queue: InspectedQueue,
  age: number,
  values: Sureness,
): Promise<ExitCode> {
  const { output, isJson, signal } = session;
  const { name, stats } = queue;
  const ids = await overdueIn(queue, stats.serverTime - age, signal);
  if (ids.length === 0) {
    output.say(`No message of queue ${quoted(name)} is late by more than ${formatDuration(age)}.`);
    return EXIT.nothing;
  }
  if (!stats.isPaused)
    output.say(`Queue ${quoted(name)} is not paused: some may come before they are dropped.`);
  const what = `${formatCount(ids.length, "message")} of queue ${quoted(name)} that ${ids.length === 1 ? "is" : "are"} late by more than ${formatDuration(age)}`;
  if (!(await confirm(session, `drop ${what}`, values))) return EXIT.done;
  const dropped = await changeWaiting(queue, "cancel", ids, { signal });
  if (isJson) await output.json({ queue: name, dropped });
  else await output.print(`Dropped ${formatCount(dropped, "message")} of queue ${quoted(name)}.`);
  return EXIT.done;
}

/** The ids of the messages and retries that were due before `limit` (epoch ms). */
async function overdueIn(
  queue: InspectedQueue,
  limit: number,
  signal: AbortSignal,
): Promise<string[]> {
  const ids: string[] = [];
  // The first deadlines come first.
  for await (const { id, deadline } of messagesIn(queue, "delayed", { signal })) {
    if (deadline >= limit) break;
    ids.push(id);
  }
  for await (const { id, deadline } of messagesIn(queue, "retrying", { signal })) {
    if (deadline < limit) ids.push(id);
  }
  return ids;
}
