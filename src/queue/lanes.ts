import {
  dueLanes,
  handPage,
  heldLanes,
  lanePage,
  retryLanes,
  usedRates,
  type DueCursor,
  type RunningLane,
  type UsedRates,
  type WaitingLane,
} from "../lua/queue/lanes.ts";
import type { Script } from "../lua/script.ts";
import type { Call } from "./call.ts";
import { checkPin, type PinnedLane } from "./flow.ts";
import type { Queue } from "./queue.ts";

/** Messages that fall due in a lane, and when (epoch ms). */
export interface DueInLane {
  readonly lane: string;
  readonly due: number;
}

/** What waits in the lanes of a queue, and what will. */
export interface LanesAhead {
  /** How much of its rates the queue has used up, and when that was. */
  readonly used: UsedRates;
  /** The lanes with waiting messages. */
  readonly waiting: readonly WaitingLane[];
  /** Until when lanes are held (epoch ms). */
  readonly holds: ReadonlyMap<string, number>;
  /** What falls due, the earliest first. */
  readonly due: readonly DueInLane[];
  /** The deadline up to which `due` has everything; undefined if to the end. */
  readonly seenUntil: number | undefined;
}

/** A lane as it is now. */
export interface LaneNow {
  readonly lane: string;
  /** How many messages and retries wait in it. */
  readonly waiting: number;
  /** How many messages are in hand, as far as that is limited. */
  readonly running: number;
  /** Until when none of those that wait becomes ready (epoch ms). */
  readonly restsUntil: number | undefined;
  /** What is pinned of it. */
  readonly pinned: PinnedLane | undefined;
}

/**
 * The lanes of a queue that have waiting messages, have messages in hand where that is limited, or are held or pinned. A paused
 * lane has no instant until which it rests.
 */
export async function lanesNow(queue: Queue, call?: Call): Promise<LaneNow[]> {
  const [waiting, running, { holds, pins }] = await Promise.all([
    pagesOf(queue, lanePage, call),
    pagesOf(queue, handPage, call),
    steeredLanes(queue, call),
  ]);
  const rests = new Map(waiting.map(({ lane, restsUntil }) => [lane, restsUntil]));
  return mergeLanes([
    ...waiting.map((one) => ({ ...one, running: 0, pinned: undefined })),
    ...running.map((one) => ({ ...one, waiting: 0, restsUntil: undefined, pinned: undefined })),
    ...Array.from(pins, ([lane, pinned]) => ({
      lane,
      waiting: 0,
      running: 0,
      restsUntil: undefined,
      pinned,
    })),
    ...Array.from(holds, ([lane, heldUntil]) => ({
      lane,
      waiting: 0,
      running: 0,
      restsUntil: Math.max(heldUntil, rests.get(lane) ?? 0),
      pinned: undefined,
    })),
  ]);
}

/** Makes one of what is said of the same lane, the noisiest first: those with the most that wait, then with the most in hand. */
export function mergeLanes(all: readonly LaneNow[]): LaneNow[] {
  const byName = new Map<string, LaneNow>();
  for (const one of all) {
    const other = byName.get(one.lane);
    const ends = [other?.restsUntil, one.restsUntil].filter((end) => end !== undefined);
    const latest = ends.length > 0 ? Math.max(...ends) : undefined;
    const pinned = one.pinned ?? other?.pinned;
    byName.set(one.lane, {
      lane: one.lane,
      waiting: one.waiting + (other?.waiting ?? 0),
      running: one.running + (other?.running ?? 0),
      restsUntil: pinned && "paused" in pinned ? undefined : latest,
      pinned,
    });
  }
  return [...byName.values()].toSorted((a, b) => b.waiting - a.waiting || b.running - a.running);
}

/** What a script tells of lanes, page after page. */
async function pagesOf<Lane extends WaitingLane | RunningLane>(
  queue: Queue,
  script: Script<"turns" | "hands" | "resting" | "stream", "from" | "step", LanePage<Lane>, never>,
  call?: Call,
): Promise<Lane[]> {
  const found: Lane[] = [];
  let from: Buffer | undefined = Buffer.alloc(0);
  while (from !== undefined) {
    const args: { from: Buffer; step: number } = { from, step: STEP };
    const page: LanePage<Lane> = await queue.read("look at the lanes of", script, args, call);
    found.push(...page.lanes);
    from = page.next;
  }
  return found;
}

interface LanePage<Lane> {
  readonly lanes: readonly Lane[];
  readonly next: Buffer | undefined;
}

/** Lanes that are held or pinned. */
export interface SteeredLanes {
  /** Now (epoch ms). */
  now: number;
  /** Until when lanes are held (epoch ms). */
  readonly holds: Map<string, number>;
  readonly pins: Map<string, PinnedLane>;
}

/** The lanes of a queue that are held or pinned. A pin that this release cannot read is left out. */
export async function steeredLanes(queue: Queue, call?: Call): Promise<SteeredLanes> {
  const found: SteeredLanes = { now: 0, holds: new Map(), pins: new Map() };
  let cursor = "0";
  do {
    const page = await queue.read("look at the lanes of", heldLanes, { cursor }, call);
    found.now = page.now;
    for (const { lane, heldUntil } of page.lanes) found.holds.set(lane, heldUntil);
    for (const { lane, pin } of page.pinned) {
      const known = pinOf(pin);
      if (known !== undefined) found.pins.set(lane, known);
    }
    cursor = page.cursor;
  } while (cursor !== "0");
  return found;
}

function pinOf(text: string): PinnedLane | undefined {
  try {
    return checkPin(JSON.parse(text) as PinnedLane);
  } catch {
    return undefined;
  }
}

/** Looks at what waits in the lanes of a queue, and at what falls due by `until` (epoch ms): at `most` messages, and as many retries. */
export async function lanesAhead(
  queue: Queue,
  until: number,
  most: number,
  call?: Call,
): Promise<LanesAhead> {
  const look = { until, most };
  const args = { shares: queue.shares(), most: MOST_USED };
  const used = await queue.read("look at the rates of", usedRates, args, call);
  const messages = await dueOf(queue, dueLanes, look, call);
  const retries = await dueOf(queue, retryLanes, look, call);
  const waiting = await pagesOf(queue, lanePage, call);
  const { holds } = await steeredLanes(queue, call);
  const ends = [messages.seenUntil, retries.seenUntil].filter((end) => end !== undefined);
  const seenUntil = ends.length === 0 ? undefined : Math.min(...ends);
  const due = [...messages.found, ...retries.found].toSorted((a, b) => a.due - b.due);
  const seen = seenUntil === undefined ? due : due.filter((one) => one.due <= seenUntil);
  return { used, waiting, holds, due: seen, seenUntil };
}

/** What falls due of messages or of retries, read in pages. */
async function dueOf(
  queue: Queue,
  script: typeof dueLanes,
  { until, most }: { readonly until: number; readonly most: number },
  call?: Call,
): Promise<{ found: DueInLane[]; seenUntil: number | undefined }> {
  const found: DueInLane[] = [];
  let next: DueCursor | undefined = { score: "", skip: 0 };
  while (next !== undefined && found.length < most) {
    const args: Parameters<typeof pageOf>[2] = { ...next, latest: until, step: PAGE };
    const page = await pageOf(queue, script, args, call);
    for (const { due, lane } of page.rows) found.push({ due, lane: page.names[lane] ?? "" });
    next = page.next;
  }
  return { found, seenUntil: next && found.at(-1)?.due };
}

function pageOf(
  queue: Queue,
  script: typeof dueLanes,
  args: DueCursor & { readonly latest: number; readonly step: number },
  call?: Call,
) {
  return queue.read("look at the lanes of", script, args, call);
}

/** Lanes per script: some 450 us of Redis's time. */
const STEP = 50;

/** Messages per script. */
const PAGE = 500;

/** Lanes that have used something of their rate. */
const MOST_USED = 10_000;
