import type { Schedule } from "../../../index.ts";
import { ruleInWords, stateOfSchedule } from "../../view/schedule-state.ts";
import type { InspectedQueue } from "../../view/inspector.ts";
import { parseCount, UsageError } from "../session/arguments.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT, type ExitCode } from "../session/exit.ts";
import { parseInstant } from "../session/instants.ts";
import { formatPairs, quoted, type Column } from "../session/output.ts";
import { confirm, outcome, type Session } from "../session/session.ts";
import { formatInstant, formatInstantIn } from "../../view/instants.ts";
import { formatCount, formatDistance, formatDuration } from "../../view/words.js";

export const schedules = defineCommand({
  usage: "schedules [run|pause|resume|remove|backfill] [queue] [name]...",
  help: `Lists the schedules of all queues, or of one: when each recurs, its next tick and its last one,
how many ticks were placed, and how many were missed. With a name it shows all of one, and
when it comes next, in its zone and here.
  delayline schedules orders nightly           its next runs, there and here
  delayline schedules run orders nightly       offers a run now
  delayline schedules pause orders nightly     withdraws what is placed
  delayline schedules resume orders nightly    begins with now
  delayline schedules remove orders nightly    until a process declares it again
  delayline schedules backfill orders nightly --from 2026-11-01 --to 2026-11-08
backfill offers the ticks of that time once more, due now, but for those that still come by
themselves. More than 100 need a --limit.
A queue that is called like one of these words: delayline schedules list <queue>.`,
  words: [0, 1000],
  options: {
    ...CHANGING,
    from: { type: "string", value: "<time>" },
    to: { type: "string", value: "<time>" },
    limit: { type: "string", value: "<count>", short: "l" },
  },
  optionHelp: {
    ...CHANGING_HELP,
    from: "backfills the ticks from this time on",
    to: "backfills the ticks before this time",
    limit: "backfills so many ticks at most, 1 to 10,000; without it 100, or none",
  },
  async run(session, words, { from, to, limit, ...values }) {
    const [word = "", ...rest] = words;
    if (word === "backfill") {
      const count = limit === undefined ? undefined : parseCount("--limit", limit, 1, 10_000);
      return await backfill(session, rest, { from, to, limit: count }, values);
    }
    if (from !== undefined || to !== undefined) {
      throw new UsageError("--from and --to go with schedules backfill");
    }
    if (Object.hasOwn(CHANGES, word)) {
      return await change(session, CHANGES[word as keyof typeof CHANGES], rest, values);
    }
    const [queue, name, ...others] = word === "list" ? rest : words;
    if (others.length > 0) throw new UsageError("usage: delayline schedules [queue] [name]");
    return name === undefined
      ? await list(session, queue)
      : await show(session, await session.open(queue ?? ""), name);
  },
});

/** The changes of schedules, by their words. */
const CHANGES = {
  run: {
    doing: "run",
    done: "Offered a run of",
    act: async ({ messages }: InspectedQueue, name: string, call: Call) =>
      (await messages.schedules.trigger(name, call)) !== undefined,
  },
  pause: {
    doing: "pause",
    done: "Paused",
    act: ({ messages }: InspectedQueue, name: string, call: Call) =>
      messages.schedules.pause(name, call),
  },
  resume: {
    doing: "resume",
    done: "Resumed",
    act: ({ messages }: InspectedQueue, name: string, call: Call) =>
      messages.schedules.resume(name, call),
  },
  remove: {
    doing: "remove",
    done: "Removed",
    act: ({ messages }: InspectedQueue, name: string, call: Call) =>
      messages.schedules.remove(name, call),
  },
} as const;

interface Call {
  readonly signal: AbortSignal;
}

type Confirmation = Parameters<typeof confirm>[2];

async function change(
  session: Session,
  { doing, done, act }: (typeof CHANGES)[keyof typeof CHANGES],
  [queueName, ...names]: readonly string[],
  values: Confirmation,
): Promise<ExitCode> {
  if (queueName === undefined || names.length === 0) {
    throw new UsageError(`usage: delayline schedules ${doing} <queue> <name>...`);
  }
  const { output, isJson, signal } = session;
  const queue = await session.open(queueName);
  const found: string[] = [];
  for (const name of names) {
    if ((await queue.messages.schedules.get(name, { signal })) !== undefined) found.push(name);
    else sayMissing(session, queueName, name);
  }
  const which = found.map(quoted).join(", ");
  const what = `${doing} ${formatCount(found.length, "schedule")} of queue ${quoted(queueName)}: ${which}`;
  if (found.length === 0 || !(await confirm(session, what, values))) {
    return outcome(found.length, names);
  }
  let count = 0;
  for (const name of found) {
    const isDone = await act(queue, name, { signal });
    if (isDone) count++;
    else sayMissing(session, queueName, name);
    if (isJson) await output.json({ queue: queueName, schedule: name, [doing]: isDone });
  }
  if (!isJson && count > 0) {
    await output.print(`${done} ${formatCount(count, "schedule")} of queue ${quoted(queueName)}.`);
  }
  return outcome(count, names);
}

function sayMissing(session: Session, queue: string, name: string): void {
  const said = `Queue ${quoted(queue)} has no schedule ${quoted(name)}.`;
  session.hint(said, "Those that it has", "schedules", queue);
}

async function backfill(
  session: Session,
  [queueName, name, ...others]: readonly string[],
  {
    from,
    to,
    limit,
  }: {
    readonly from: string | undefined;
    readonly to: string | undefined;
    readonly limit: number | undefined;
  },
  values: Confirmation,
): Promise<ExitCode> {
  if (queueName === undefined || name === undefined || others.length > 0 || from === undefined) {
    throw new UsageError(
      "usage: delayline schedules backfill <queue> <name> --from <time> [--to <time>]",
    );
  }
  const { output, isJson, signal } = session;
  const now = Math.floor(await (await session.inspector()).line.serverTime({ signal }));
  const span = {
    from: parseInstant("--from", from, now),
    // What is ahead comes by itself.
    to: Math.min(to === undefined ? now : parseInstant("--to", to, now), now),
  };
  if (span.from >= now) throw new UsageError("--from must be past: ticks ahead come by themselves");
  if (span.from >= span.to) throw new UsageError("--from must be before --to");
  const { messages } = await session.open(queueName);
  if ((await messages.schedules.get(name, { signal })) === undefined) {
    sayMissing(session, queueName, name);
    return EXIT.nothing;
  }
  const range = { ...span, ...(limit !== undefined && { limit }), signal };
  const foreseen = await foresee(() =>
    messages.schedules.backfill(name, { ...range, dryRun: true }),
  );
  const about = `${formatCount(foreseen.length, "tick")} of ${quoted(name)} in queue ${quoted(queueName)} from ${formatInstant(span.from)} to ${formatInstant(span.to)}`;
  if (foreseen.length === 0) {
    output.say(`There are no ticks to offer: ${about}.`);
    return EXIT.nothing;
  }
  if (!(await confirm(session, `offer once more ${about}`, values))) return EXIT.done;
  const ticks = await messages.schedules.backfill(name, range);
  if (isJson) await output.json({ queue: queueName, schedule: name, ticks });
  else await output.print(`Offered ${formatCount(ticks.length, "run")}, due now.`);
  const last = ticks.at(-1);
  if (ticks.length === limit && last !== undefined) {
    output.say(`There may be more: the last one was ${formatInstant(last)}. Go on with --from.`);
  }
  return ticks.length > 0 ? EXIT.done : EXIT.nothing;
}

/** @throws {UsageError} if the span is not one that may be backfilled. */
async function foresee(look: () => Promise<number[]>): Promise<number[]> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(error.message);
    throw error;
  }
}

async function list(session: Session, queueName: string | undefined): Promise<ExitCode> {
  const { output, isJson, signal } = session;
  const rows: string[][] = [];
  const look = async ({ name: queue, messages, stats }: InspectedQueue) => {
    const found: Schedule[] = [];
    for await (const one of messages.schedules.list({ signal })) found.push(one);
    const now = stats.serverTime;
    for (const one of found.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const state = stateOfSchedule(one, now, stats.isPaused);
      if (isJson) await output.json({ queue, ...one, state });
      rows.push(rowOf(queue, one, now, stateInWords(one, now, stats.isPaused)));
    }
  };
  let refused = 0;
  if (queueName === undefined) ({ refused } = await session.eachQueue(look));
  else await look(await session.open(queueName));
  if (rows.length === 0) {
    output.say(
      queueName === undefined
        ? "No queue has a schedule."
        : `Queue ${quoted(queueName)} has no schedule.`,
    );
  } else if (!isJson) {
    await output.table(COLUMNS, rows);
  }
  if (refused > 0) return EXIT.redis;
  return rows.length > 0 ? EXIT.done : EXIT.nothing;
}

const COLUMNS: readonly Column[] = [
  { title: "QUEUE", canShrink: true },
  { title: "SCHEDULE", canShrink: true },
  { title: "WHEN", canShrink: true },
  { title: "NEXT" },
  { title: "LAST" },
  { title: "PLACED", align: "right" },
  { title: "MISSED", align: "right" },
  { title: "STATE" },
];

function rowOf(queue: string, schedule: Schedule, now: number, state: string): string[] {
  const { name, next, lastAt, count, missed } = schedule;
  const [first] = next;
  return [
    queue,
    name,
    ruleInWords(schedule, formatDuration),
    first === undefined ? "-" : formatDistance(first, now),
    lastAt === undefined ? "-" : formatDistance(lastAt, now),
    formatCount(count),
    formatCount(missed),
    state,
  ];
}

function stateInWords(schedule: Schedule, now: number, isQueuePaused: boolean): string {
  const state = stateOfSchedule(schedule, now, isQueuePaused);
  if (state === "unplanned" && schedule.planAt === 0) return "Redis has lost when to plan it";
  if (state === "unplanned") return `nobody plans it, for ${formatDuration(now - schedule.planAt)}`;
  return state === "active" && isQueuePaused ? "queue paused" : state;
}

async function show(
  session: Session,
  { name: queue, messages, stats }: InspectedQueue,
  name: string,
): Promise<ExitCode> {
  const { output, isJson, signal } = session;
  const schedule = await messages.schedules.get(name, { signal });
  if (schedule === undefined) {
    sayMissing(session, queue, name);
    return EXIT.nothing;
  }
  const { isPaused, serverTime: now } = stats;
  const { set } = schedule;
  const revision =
    set === undefined ? undefined : await messages.schedules.revisionOf(set, { signal });
  if (isJson) {
    const state = stateOfSchedule(schedule, now, isPaused);
    await output.json({ queue, ...schedule, revision, state });
    return EXIT.done;
  }
  const { next, timeZone } = schedule;
  await output.print(
    `Schedule ${quoted(name)} of queue ${quoted(queue)}: ${stateInWords(schedule, now, isPaused)}`,
    ...formatPairs(pairsOf(schedule, now, revision)),
  );
  for (const tick of next.slice(0, MOST_TICKS)) {
    await output.print(
      `  next      ${formatInstantIn(tick, timeZone)} (here ${formatInstant(tick)}, ${formatDistance(tick, now)})`,
    );
  }
  if (next.length === 0 && stateOfSchedule(schedule, now, isPaused) === "active") {
    output.say(
      `What was placed has been cancelled. Ticks after ${formatInstant(schedule.plannedUntil)} are placed from ${formatInstant(schedule.planAt)} on.`,
    );
  }
  if (next.length > MOST_TICKS) {
    output.say(`${formatCount(next.length - MOST_TICKS)} more are placed.`);
  }
  return EXIT.done;
}

/** How many placed ticks are shown. */
const MOST_TICKS = 10;

function pairsOf(
  schedule: Schedule,
  now: number,
  revision: number | undefined,
): [name: string, value: string][] {
  const { startAt, endAt, limit, except, jitter, spread, set, version, lastAt } = schedule;
  const at = (instant: number) => `${formatInstant(instant)} (${formatDistance(instant, now)})`;
  return [
    ["when", ruleInWords(schedule, formatDuration)],
    ...given("from", startAt, at),
    ...given("until", endAt, at),
    ...given("limit", limit, (ticks) => formatCount(ticks, "tick")),
    ...given("except", except, ({ length }) => formatCount(length, "exclusion")),
    ...given("jitter", jitter, formatDuration),
    ...given("spread", spread, formatDuration),
    ["misfire", `${schedule.misfire}, grace ${formatDuration(schedule.misfireGrace)}`],
    ["overlap", schedule.overlap],
    ...given("lane", schedule.lane, quoted),
    ...given("priority", schedule.priority, String),
    ["version", String(version)],
    ...given("set", set, (name) =>
      revision === undefined ? name : `${name}, declared in revision ${revision}`,
    ),
    [
      "planned by",
      schedule.needs === "code" ? "processes that declare it" : "every process that moves messages",
    ],
    ["placed", `${formatCount(schedule.count, "tick")}, until ${at(schedule.plannedUntil)}`],
    ["missed", formatCount(schedule.missed, "tick")],
    ...given(
      "dropped",
      schedule.droppedOverlap || undefined,
      (runs) => `${formatCount(runs, "run")}, while another one was ready or in flight`,
    ),
    ["last", lastAt === undefined ? "none" : at(lastAt)],
  ];
}

function given<Value>(
  name: string,
  value: Value | undefined,
  write: (value: Value) => string,
): [name: string, value: string][] {
  return value === undefined ? [] : [[name, write(value)]];
}
