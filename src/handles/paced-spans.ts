import type { Pace } from "../queue/flow.ts";

/** Consecutive spans of equal length, and how many messages fall due in each. */
interface DueSpans {
  /** The beginning of the first span (epoch ms). */
  readonly from: number;
  /** The length of each span in milliseconds. */
  readonly step: number;
  readonly counts: readonly number[];
  /** How many messages are due before the first span and have not become ready. */
  readonly before: number;
  /** How many may go at once at the beginning. Defaults to the burst. */
  readonly tokens?: number | undefined;
}

/** What becomes of a span under a rate. */
export interface PacedSpan {
  readonly due: number;
  /** How many become ready in it. */
  readonly ready: number;
  /** How many wait at its end. */
  readonly waiting: number;
  /** How many may go at once at its end. */
  readonly tokens: number;
  /** When the last one that becomes ready in it does so (epoch ms). */
  readonly lastAt: number;
}

/**
 * Plays messages through a rate: those of a span fall due evenly over it. Without a `pace`
 * all become ready when they are due. Each of `shares` parts has a share of the burst, at least 1.
 */
export function pacedSpans(
  { from, step, counts, before, tokens: saved }: DueSpans,
  pace: Pace | undefined,
  shares: number,
): PacedSpan[] {
  const burst =
    pace === undefined ? Infinity : shares * Math.max(1, Math.floor(pace.burst / shares));
  const gain = pace === undefined ? Infinity : (step * 1000) / pace.step;
  let [waiting, tokens] = [before, saved ?? burst];
  return counts.map((count, i) => {
    const due = count + (i === 0 ? before : 0);
    const all = waiting + count;
    const at = from + i * step;
    const ready = Math.min(all, Math.floor(tokens + gain));
    // What it needs beyond the tokens at its beginning comes evenly; what falls due last cannot go earlier.
    const share = count > 0 ? 1 : Math.max(0, ready - tokens) / gain;
    waiting = all - ready;
    tokens = Math.min(burst, tokens + gain - ready);
    const lastAt = at + (ready === 0 ? 0 : step * Math.min(1, share));
    return { due, ready, waiting, tokens, lastAt };
  });
}
