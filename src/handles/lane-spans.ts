import type { Spans } from "../partitions/parts/numbers.ts";
import { laneOf, paceOf, type FlowOptions, type Rate } from "../queue/flow.ts";
import type { DueInLane, LanesAhead } from "../queue/lanes.ts";
import { setImmediate } from "../time/runtime.ts";

/** What becomes of what waits and falls due in lanes, in spans. */
export interface PlayedSpans {
  /** How many fall due in each span. */
  readonly due: number[];
  /** How many become ready in each span. */
  readonly ready: number[];
  /** How many wait when the first span begins. */
  before: number;
  /** How many wait when the last span ends. */
  waiting: number;
  /** When the last one became ready (epoch ms); undefined if none did. */
  lastAt: number | undefined;
}

/**
 * Plays what is `ahead` in the lanes of a queue through a flow, message by message: the lanes in which messages wait take turns, and
 * each keeps its rate, as in `lua/places/turns.ts`. Priorities do not matter here: they change which message of a lane goes, not
 * how many.
 *
 * The part has one of `shares` equal shares of the queue's rate. A backlog is played in {@link MOST_TURNS} turns at most, of several messages
 * each if it is larger. Lets others run now and then.
 *
 * @throws the signal's reason if it is aborted.
 */
export async function playLanes(
  ahead: LanesAhead,
  flow: FlowOptions,
  spans: Spans,
  shares: number,
  signal?: AbortSignal,
): Promise<PlayedSpans> {
  const play = new Play(ahead, flow, spans, shares);
  for (let turns = 0; play.takeTurn(); turns++) {
    if (turns % TURNS_AT_ONCE < TURNS_AT_ONCE - 1) continue;
    await new Promise<void>((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
  }
  return play.result();
}

/** A rate, and up to when it is used up: as `lua/places/pace.ts` has it, in milliseconds. */
class Bucket {
  readonly #step: number;
  readonly #burst: number;
  #arrival: number;

  /** `used`: how many messages of it are used up at `now`. */
  constructor(rate: Rate, now: number, used = 0, shares = 1) {
    const { step, burst } = paceOf(rate);
    this.#step = (step / 1000) * shares;
    this.#burst = Math.max(1, Math.floor(burst / shares));
    this.#arrival = now + Math.min(used, this.#burst) * this.#step;
  }

  mayGo(now: number): boolean {
    return this.#arrival - now <= (this.#burst - 1 + ROUNDING) * this.#step;
  }

  /** When to look again after it was used up: when the next one may go, or as many as fall to 10 ms. */
  get next(): number {
    const together = Math.max(1, Math.min(this.#burst, Math.floor(10 / this.#step)));
    return Math.ceil(this.#arrival - (this.#burst - together) * this.#step);
  }

  use(now: number, count: number): void {
    this.#arrival = Math.max(this.#arrival, now) + count * this.#step;
  }
}

/** A lane. */
interface LanePlay {
  readonly bucket: Bucket | undefined;
  /** What a turn costs in virtual time. */
  readonly cost: number;
  readonly heldUntil: number;
  waiting: number;
  /** Its virtual time while messages wait in it. */
  at: number;
  /** Until when it rests. */
  restsUntil: number;
}

class Play {
  readonly #flow: FlowOptions;
  readonly #spans: Spans;
  readonly #end: number;
  readonly #holds: ReadonlyMap<string, number>;
  readonly #used: ReadonlyMap<string, number>;
  readonly #due: readonly DueInLane[];
  readonly #bucket: Bucket | undefined;
  readonly #unit: number;
  readonly #lanes = new Map<string, LanePlay>();
  /** Lanes whose turn may come, by virtual time, and those that rest, by until when. */
  readonly #going = new Heap<LanePlay>((a, b) => a.at - b.at);
  readonly #resting = new Heap<LanePlay>((a, b) => a.restsUntil - b.restsUntil);
  readonly #played: PlayedSpans;
  #now: number;
  /** The virtual time of the last turn. */
  #turn = 0;
  /** How many of the due messages have come. */
  #come = 0;

  constructor(ahead: LanesAhead, flow: FlowOptions, spans: Spans, shares: number) {
    const { used, waiting, holds, due } = ahead;
    this.#flow = flow;
    this.#spans = spans;
    this.#end = spans.from + spans.count * spans.step;
    this.#holds = holds;
    this.#used = new Map(used.lanes.map((one) => [one.lane, one.used]));
    this.#due = due;
    this.#now = used.now;
    this.#bucket = flow.rate && new Bucket(flow.rate, used.now, used.queue, shares);
    const none = () => Array.from({ length: spans.count }, () => 0);
    this.#played = { due: none(), ready: none(), before: 0, waiting: 0, lastAt: undefined };
    const backlog = waiting.reduce((sum, one) => sum + one.waiting, 0);
    this.#unit = Math.ceil(backlog / MOST_TURNS);
    for (const { lane, waiting: count } of waiting) this.#arrive(lane, count, -Infinity);
  }

  /** Lets the next turn go, when it may; returns false if that is not before the end. */
  takeTurn(): boolean {
    while (this.#now < this.#end) {
      for (let one = this.#next; one !== undefined && one.due <= this.#now; one = this.#next) {
        this.#arrive(one.lane, 1, one.due);
        this.#come++;
      }
      while ((this.#resting.first?.restsUntil ?? Infinity) <= this.#now) {
        this.#going.push(this.#resting.pop() as LanePlay);
      }
      const lane = this.#going.first;
      if (lane !== undefined && this.#bucket?.mayGo(this.#now) !== false) {
        this.#deal(lane);
        return true;
      }
      const next = Math.min(
        this.#next?.due ?? Infinity,
        this.#resting.first?.restsUntil ?? Infinity,
        lane === undefined ? Infinity : (this.#bucket?.next ?? Infinity),
      );
      this.#now = Math.max(this.#now, next);
    }
    return false;
  }

  result(): PlayedSpans {
    for (const { waiting } of this.#lanes.values()) this.#played.waiting += waiting;
    return this.#played;
  }

  get #next(): DueInLane | undefined {
    return this.#due[this.#come];
  }

  #arrive(name: string, count: number, due: number): void {
    const span = this.#spanAt(due);
    if (span < 0) this.#played.before += count;
    else this.#played.due[span] = (this.#played.due[span] ?? 0) + count;
    let lane = this.#lanes.get(name);
    if (lane === undefined) this.#lanes.set(name, (lane = this.#laneOf(name)));
    lane.waiting += count;
    if (lane.waiting > count) return;
    lane.at = this.#turn;
    this.#queueUp(lane, lane.heldUntil);
  }

  #laneOf(name: string): LanePlay {
    const { rate, weight = 1 } = laneOf(this.#flow, name);
    const bucket = rate && new Bucket(rate, this.#now, this.#used.get(name));
    const heldUntil = this.#holds.get(name) ?? -Infinity;
    return { bucket, cost: 1 / weight, heldUntil, waiting: 0, at: 0, restsUntil: 0 };
  }

  #queueUp(lane: LanePlay, heldUntil: number): void {
    const next = lane.bucket?.mayGo(this.#now) === false ? lane.bucket.next : -Infinity;
    lane.restsUntil = Math.max(next, heldUntil);
    (lane.restsUntil > this.#now ? this.#resting : this.#going).push(lane);
  }

  #deal(lane: LanePlay): void {
    const count = Math.min(lane.waiting, this.#unit || 1);
    this.#going.pop();
    this.#turn = lane.at;
    lane.at += count * lane.cost;
    lane.waiting -= count;
    lane.bucket?.use(this.#now, count);
    this.#bucket?.use(this.#now, count);
    if (lane.waiting > 0) this.#queueUp(lane, -Infinity);
    const span = this.#spanAt(this.#now);
    if (span < 0) this.#played.before -= count;
    else this.#played.ready[span] = (this.#played.ready[span] ?? 0) + count;
    this.#played.lastAt = this.#now;
  }

  /** The span in which an instant is; negative before the first. */
  #spanAt(instant: number): number {
    return Math.floor((instant - this.#spans.from) / this.#spans.step);
  }
}

/** A binary heap. */
class Heap<Item> {
  readonly #items: Item[] = [];
  readonly #compare: (a: Item, b: Item) => number;

  constructor(compare: (a: Item, b: Item) => number) {
    this.#compare = compare;
  }

  get first(): Item | undefined {
    return this.#items[0];
  }

  push(item: Item): void {
    const items = this.#items;
    let at = items.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#compare(items[parent] as Item, item) <= 0) break;
      items[at] = items[parent] as Item;
      at = parent;
    }
    items[at] = item;
  }

  pop(): Item | undefined {
    const items = this.#items;
    const [first] = items;
    const item = items.pop();
    if (item === undefined || items.length === 0) return item;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (
        child + 1 < items.length &&
        this.#compare(items[child + 1] as Item, items[child] as Item) < 0
      )
        child++;
      if (child >= items.length || this.#compare(items[child] as Item, item) >= 0) break;
      items[at] = items[child] as Item;
      at = child;
    }
    items[at] = item;
    return first;
  }
}

/** A rounding error of a division must not cost a message its turn. */
const ROUNDING = 1e-6;

/** Turns of a backlog at most, for its time. */
const MOST_TURNS = 300_000;

/** Turns until others may run: some milliseconds. */
const TURNS_AT_ONCE = 10_000;
