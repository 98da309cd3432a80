import type { Noted } from "../sim.ts";

/** What somebody has done to a schedule. Each is noted when it begins, and when it has succeeded, however often it was tried. */
export type Deed = "declare" | "pause" | "resume" | "remove";

/** The deed that ended last, and the one that begins next: in between the schedule stays as it is. */
interface Span {
  readonly from: number;
  readonly fromAt: number;
  readonly to: number;
  readonly toAt: number;
  /** Milliseconds between two ticks; undefined while none may come. */
  readonly every: number | undefined;
}

/** A message of a schedule that has reached a handler. */
interface Run {
  readonly name: string;
  readonly tick: number;
  readonly attempt: number;
  readonly at: number;
}

/**
 * Judges the schedules of a run, whose ticks are multiples of `every` without jitter, by what was noted:
 *
 * - **No tick is lost** while a schedule is active, if its `misfire` is `all`.
 * - **None comes twice**: one first attempt for each tick. A failover may undo what was delivered.
 * - **None comes that must not**: of a schedule that was removed, or paused, before the tick.
 * - **The watermark never falls**, and with it the number of ticks, while nobody changes the schedule.
 */
export function judgeTicks(history: readonly Noted[], misfireAll: readonly string[]): string[] {
  const runs = history.flatMap(({ at, event }): Run[] =>
    "ran" in event
      ? [{ ...(event as unknown as { name: string; tick: number; attempt: number }), at }]
      : [],
  );
  const names = [
    ...new Set(history.flatMap(({ event }) => ("deed" in event ? [event["name"] as string] : []))),
  ];
  return names.flatMap((name) => {
    const spans = spansOf(history, name);
    const own = runs.filter((run) => run.name === name);
    return [
      ...(misfireAll.includes(name) ? lost(name, spans, own, history) : []),
      ...twice(name, own, history),
      ...unwanted(name, spans, own, history),
      ...fallen(name, spans, history),
    ];
  });
}

function lost(
  name: string,
  spans: readonly Span[],
  runs: readonly Run[],
  history: readonly Noted[],
): string[] {
  const came = new Set(runs.map(({ tick }) => tick));
  const violations: string[] = [];
  for (const { from, fromAt, to, toAt, every } of spans) {
    if (every === undefined || to === Infinity) continue;
    if (faults(history, ["failover"]).some(({ event }) => (event["since"] as number) <= toAt))
      continue;
    // What a clock has leapt over comes later.
    const steps = faults(history, ["clock-step"]);
    if (steps.some(({ at }) => at <= toAt && at >= toAt - RECOVERY)) continue;
    // Whoever ends it withdraws what was due, if nobody has moved it by then.
    const isDisturbed = disturbances(history).some(
      ({ at }) => at >= fromAt - RECOVERY && at <= toAt && at >= toAt - RECOVERY,
    );
    const until = to - (isDisturbed ? RECOVERY : PROMPT);
    for (let tick = Math.ceil((from + 1) / every) * every; tick < until; tick += every) {
      if (!came.has(tick) && !isCleared(tick, every, history))
        violations.push(`lost: tick ${tick} of ${name}`);
    }
  }
  return violations;
}

/** Whether somebody has cleared the queue when the message of this tick may have been there. */
function isCleared(tick: number, every: number, history: readonly Noted[]): boolean {
  const ends = history.filter(({ event }) => event["clears"] === "done");
  const begins = history.filter(({ event }) => event["clears"] === "begins");
  return begins.some(({ event }, i) => {
    const until = (ends[i]?.event["now"] as number | undefined) ?? Infinity;
    return tick > (event["now"] as number) - RECOVERY && tick <= until + AHEAD + 2 * every;
  });
}

function twice(name: string, runs: readonly Run[], history: readonly Noted[]): string[] {
  if (faults(history, ["failover"]).length > 0) return [];
  const first = runs.filter(({ attempt }) => attempt === 1).map(({ tick }) => tick);
  return first
    .filter((tick, i) => first.indexOf(tick) !== i)
    .map((tick) => `twice: tick ${tick} of ${name}`);
}

function unwanted(
  name: string,
  spans: readonly Span[],
  runs: readonly Run[],
  history: readonly Noted[],
): string[] {
  const failovers = faults(history, ["failover"]);
  return runs.flatMap(({ tick, at }) => {
    const span = spans.find((one) => one.from < tick && tick < one.to);
    if (span === undefined) return [];
    // It may have brought the schedule back.
    if (failovers.some(({ event }) => (event["since"] as number) <= span.toAt)) return [];
    const isOwn = span.every !== undefined && tick % span.every === 0;
    return isOwn ? [] : [`unwanted: tick ${tick} of ${name} at ${at} ms`];
  });
}

function fallen(name: string, spans: readonly Span[], history: readonly Noted[]): string[] {
  const failovers = faults(history, ["failover"]).map(({ at }) => at);
  const seen = history.filter(({ event }) => event["watermark"] === name);
  return seen.flatMap((one, i) => {
    const before = seen[i - 1];
    if (before === undefined) return [];
    const span = spans.find(({ fromAt, toAt }) => fromAt < before.at && one.at < toAt);
    if (span === undefined || failovers.some((at) => at >= before.at && at <= one.at)) return [];
    const isLess = (["until", "count"] as const).some(
      (what) => (one.event[what] as number) < (before.event[what] as number),
    );
    return isLess ? [`the watermark of ${name} fell at ${one.at} ms`] : [];
  });
}

function spansOf(history: readonly Noted[], name: string): Span[] {
  const deeds = history.filter(({ event }) => "deed" in event && event["name"] === name);
  const spans: Span[] = [];
  let last: Omit<Span, "to" | "toAt"> = { from: 0, fromAt: -1, every: undefined };
  let underWay = 0;
  let every: number | undefined;
  for (const { at, event } of deeds) {
    const now = event["now"] as number;
    if (event["phase"] === "begins") {
      if (underWay++ === 0) spans.push({ ...last, to: now, toAt: at });
      continue;
    }
    underWay--;
    if (event["deed"] === "declare") every = event["every"] as number;
    const isActive = event["deed"] === "declare" || event["deed"] === "resume";
    last = { from: now, fromAt: at, every: isActive ? every : undefined };
  }
  if (underWay === 0) spans.push({ ...last, to: Infinity, toAt: Infinity });
  return spans;
}

/** What may hold messages up: faults, changes of the number of partitions, and pauses of the queue. */
function disturbances(history: readonly Noted[]): Noted[] {
  return history.filter(({ event }) => ["fault", "changes", "holds"].some((what) => what in event));
}

function faults(history: readonly Noted[], kinds?: readonly string[]): Noted[] {
  return history.filter(({ event }) =>
    "fault" in event ? (kinds?.includes(event["fault"] as string) ?? true) : false,
  );
}

/** Milliseconds within which a due message becomes ready if nothing is wrong, and if something was. */
const PROMPT = 2000;
const RECOVERY = 45_000;

/** Milliseconds by which ticks are placed ahead, or two ticks. */
const AHEAD = 30_000;
