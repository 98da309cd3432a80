import type { FlowOptions, Rate } from "../../../src/index.ts";
import { mayHaveTakenEffect, type Rule } from "./promises.ts";
import type { Call, Move, Story } from "./story.ts";

/**
 * **A rate is kept**: while it certainly holds, no window of time has more messages than the burst and what falls to it. Of
 * lanes that all have a rate this is so for their sum: who moves messages does not say of which lanes they are.
 *
 * Time is the server's, which a step may turn; and a failover takes with it what was noted since the copy was made: no
 * window over one is judged.
 */
export const rated: Rule = (story, { parts = 1 }) =>
  story.callsOf("setFlow").flatMap((set) => {
    const { ended } = set;
    if (ended === undefined || set.error !== undefined) return [];
    const bounds = boundsOf(set.args["flow"] as FlowOptions, lanesIn(story), parts);
    const until = endOf(set, story);
    const moves = story.moves
      .filter(({ movedAt, index }) => movedAt >= ended.now && index > ended.index)
      .filter(({ index, movedAt }) => index < until.index && movedAt <= until.now)
      .toSorted((a, b) => a.movedAt - b.movedAt);
    return windowsOf(moves).flatMap(([count, length]) => {
      const most = Math.min(...bounds.map(({ burst, perMs }) => burst + length * perMs));
      return count > most + 1e-6
        ? [`${count} messages became ready in ${length} ms, and ${most} may, since ${ended.at} ms`]
        : [];
    });
  });

interface Bound {
  readonly burst: number;
  readonly perMs: number;
}

/** What the rates of a flow allow in each window, if messages have these lanes. */
function boundsOf(
  { rate, lane, lanes = {} }: FlowOptions,
  names: readonly string[],
  parts: number,
): Bound[] {
  const ofQueue = rate === undefined ? [] : [boundOf(rate)];
  const ofLanes = names.flatMap((name) => {
    const own = (lanes[name] ?? lane)?.rate;
    return own === undefined ? [] : [boundOf(own)];
  });
  const sumOf = (which: keyof Bound) => ofLanes.reduce((sum, one) => sum + one[which], 0);
  return [
    ...ofQueue.map(({ burst, perMs }) => ({ burst: Math.max(burst, parts), perMs })),
    ...(names.length > 0 && ofLanes.length === names.length
      ? [{ burst: sumOf("burst"), perMs: sumOf("perMs") }]
      : []),
  ];
}

function boundOf({ limit, per, burst = 1 }: Rate): Bound {
  return { burst, perMs: limit / per };
}

/** The lanes of the messages, of which "" is none. */
function lanesIn({ offers }: Story): string[] {
  const all = [...offers.values()].map(({ args }) => (args["lane"] as string | undefined) ?? "");
  return [...new Set(all)];
}

/** When the rate certainly held for the last time: another one was set, or it was cleared, or Redis or its clock was changed. */
function endOf(
  { begun: since, ended, number }: Call,
  story: Story,
): { index: number; now: number } {
  const begin = ended?.index ?? Infinity;
  const others = story
    .callsOf("setFlow", "clearFlow")
    .filter((call) => call.number !== number && mayHaveTakenEffect(call))
    // Of two that overlap, either may be the later one.
    .filter(({ ended: end }) => (end?.index ?? Infinity) > since.index)
    .map(({ begun }) => begun);
  const faults = story.faults
    .filter(({ kind, index }) => (kind === "clock-step" || kind === "failover") && index > begin)
    .map(({ index }) => ({ index, now: Infinity }));
  const ends = [...others, ...faults, { index: Infinity, now: Infinity }];
  return {
    index: Math.min(...ends.map(({ index }) => index)),
    now: Math.min(...ends.map(({ now }) => now)),
  };
}

/** How many messages were moved in each window that begins and ends with a move, and how long it is (ms). */
function windowsOf(moves: readonly Move[]): [count: number, length: number][] {
  return moves.flatMap((first, i) => {
    let count = 0;
    return moves.slice(i).map((last): [number, number] => {
      count += last.count;
      return [count, last.movedAt - first.movedAt];
    });
  });
}
