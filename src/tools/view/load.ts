import type { InspectedQueue } from "./inspector.ts";

/** What falls due in a queue in some spans of time. */
export interface Load {
  /** How many messages and retries, for each span. */
  readonly counts: readonly number[];
  /** The schedules whose later ticks are not among them, since they are placed shortly before they are due. */
  readonly beyond: readonly Beyond[];
}

/** A schedule whose ticks are planned up to an instant (epoch ms) before the end of the spans. */
export interface Beyond {
  readonly queue: string;
  readonly schedule: string;
  readonly plannedUntil: number;
}

/** Counts what falls due in spans that begin at these instants (epoch ms); the last one ends at the last of them. */
export async function loadOf(
  queue: InspectedQueue,
  bounds: readonly number[],
  signal?: AbortSignal,
): Promise<Load> {
  const counts: number[] = [];
  while (counts.length < bounds.length - 1) {
    const [from = 0, ...others] = bounds.slice(counts.length);
    const step = (others[0] ?? from) - from;
    // One forecast counts spans of one length.
    const isOther = others.findIndex((bound, i) => bound !== from + (i + 1) * step);
    const count = isOther === -1 ? others.length : isOther;
    if (step === 0) counts.push(...Array.from({ length: count }, () => 0));
    else counts.push(...(await queue.messages.forecast({ from, step, count, signal })).counts);
  }
  const beyond: Beyond[] = [];
  const until = bounds.at(-1) ?? 0;
  const schedules = queue.stats.schedules > 0 ? queue.messages.schedules.list({ signal }) : [];
  for await (const { name: schedule, planAt, plannedUntil } of schedules) {
    const isOver = planAt === Infinity;
    if (!isOver && plannedUntil < until) beyond.push({ queue: queue.name, schedule, plannedUntil });
  }
  return { counts, beyond };
}
