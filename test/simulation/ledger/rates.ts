import type { Rate } from "../../../src/index.ts";
import { earliest, endOf, flowOf, flowsSet, lanesIn, overlapping, turned } from "./flows.ts";
import type { Until } from "./flows.ts";
import type { Rule } from "./promises.ts";
import type { Call, Move, Story } from "./story.ts";

/**
 * **A rate is kept**: while it certainly holds, no window of time has more messages than the burst and what falls to it. Of
 * lanes that all have a rate this is so for their sum: who moves messages does not say of which lanes they are.
 *
 * Time is the server's, which a step may turn; and a failover takes with it what was noted since the copy was made: no
 * window over one is judged.
 */
export const rated: Rule = (story, { parts = 1 }) =>
  flowsSet(story).flatMap((set) => {
    const bounds = [...ofQueue(set, parts), ...ofAllLanes(set, lanesIn(story))];
    return windowsOf(movesIn(set, endOf(set, story), story)).flatMap(([first, last, count]) => {
      const most = Math.min(
        ...bounds.map(({ burst, perMs }) => burst + (last.movedAt - first.movedAt) * perMs),
      );
      return tooMany(count, most, first, last);
    });
  });

/**
 * **Another rate does not begin anew**: over a change of the queue's rate, no window has more messages than the greater
 * burst and what falls to each rate while it holds. While a call is under way, that is the higher rate.
 */
export const ratedOverChanges: Rule = (story, { parts = 1 }) =>
  flowsSet(story).flatMap((first) => {
    const spans: Span[] = [];
    let until: Until = turned(first, story);
    for (let set: Call | undefined = first; set !== undefined;) {
      const [bound] = ofQueue(set, parts);
      if (bound === undefined) {
        until = earliest([until, set.begun]);
        break;
      }
      spans.push({ ...bound, from: set.begun.now, until: Infinity });
      const next = nextOf(set, story);
      if (next === "unknown") {
        until = earliest([until, endOf(set, story)]);
        break;
      }
      if (next !== undefined)
        spans[spans.length - 1] = { ...bound, from: set.begun.now, until: next.ended?.now ?? 0 };
      set = next;
    }
    if (spans.length < 2) return [];
    return windowsOf(movesIn(first, until, story)).flatMap(([from, to, count]) =>
      tooMany(count, mostIn(spans, from.movedAt, to.movedAt), from, to),
    );
  });

interface Bound {
  readonly burst: number;
  readonly perMs: number;
}

/** When a rate may have held (epoch ms). */
interface Span extends Bound {
  readonly from: number;
  readonly until: number;
}

/** The call that has certainly set the next flow, if nothing else may have been between; undefined if there was no other. */
function nextOf(set: Call, story: Story): Call | "unknown" | undefined {
  const later = overlapping(set, story).toSorted((a, b) => a.begun.index - b.begun.index);
  const [next, afterwards] = later;
  if (next === undefined) return undefined;
  const { begun, ended, error, verb } = next;
  const isCertain = verb === "setFlow" && ended !== undefined && error === undefined;
  if (!isCertain || begun.index < (set.ended?.index ?? Infinity)) return "unknown";
  return afterwards !== undefined && afterwards.begun.index < ended.index ? "unknown" : next;
}

/** The most messages in a window: where spans overlap the higher rate counts, and of all bursts the greatest. */
function mostIn(spans: readonly Span[], from: number, until: number): number {
  const within = spans.filter((span) => span.from <= until && span.until >= from);
  const edges = within
    .flatMap((span) => [span.from, span.until])
    .filter((edge) => edge > from && edge < until);
  const cuts = [from, ...edges.toSorted((a, b) => a - b), until];
  const pieces = cuts.slice(1).map((end, i) => {
    const begin = cuts[i] ?? end;
    const rates = within.filter((span) => span.from <= begin && span.until >= end);
    return (end - begin) * Math.max(0, ...rates.map(({ perMs }) => perMs));
  });
  return Math.max(...within.map(({ burst }) => burst)) + pieces.reduce((sum, one) => sum + one, 0);
}

/** What the queue's rate allows. */
function ofQueue(set: Call, parts: number): Bound[] {
  const { rate } = flowOf(set);
  if (rate === undefined) return [];
  const { burst, perMs } = boundOf(rate);
  return [{ burst: Math.max(burst, parts), perMs }];
}

/** What the lanes allow together, if all have a rate. */
function ofAllLanes(set: Call, names: readonly string[]): Bound[] {
  const { lane, lanes = {} } = flowOf(set);
  const bounds = names.flatMap((name) => {
    const own = (lanes[name] ?? lane)?.rate;
    return own === undefined ? [] : [boundOf(own)];
  });
  if (names.length === 0 || bounds.length < names.length) return [];
  const sumOf = (which: keyof Bound) => bounds.reduce((sum, one) => sum + one[which], 0);
  return [{ burst: sumOf("burst"), perMs: sumOf("perMs") }];
}

function boundOf({ limit, per, burst = 1 }: Rate): Bound {
  return { burst, perMs: limit / per };
}

function movesIn({ ended }: Call, until: Until, story: Story): Move[] {
  if (ended === undefined) return [];
  return story.moves
    .filter(({ movedAt, index }) => movedAt >= ended.now && index > ended.index)
    .filter(({ index, movedAt }) => index < until.index && movedAt <= until.now)
    .toSorted((a, b) => a.movedAt - b.movedAt);
}

/** Each window that begins and ends with a move, and how many messages were moved in it. */
function windowsOf(moves: readonly Move[]): [first: Move, last: Move, count: number][] {
  return moves.flatMap((first, i) => {
    let count = 0;
    return moves.slice(i).map((last): [Move, Move, number] => {
      count += last.count;
      return [first, last, count];
    });
  });
}

function tooMany(count: number, most: number, first: Move, last: Move): string[] {
  if (count <= most + 1e-6) return [];
  const length = last.movedAt - first.movedAt;
  return [`${count} messages became ready in ${length} ms until ${last.at} ms, and ${most} may`];
}
