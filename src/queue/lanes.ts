import {
  dueLanes,
  heldLanes,
  lanePage,
  retryLanes,
  usedRates,
  type DueCursor,
  type UsedRates,
  type WaitingLane,
} from "../lua/queue/lanes.ts";
import type { Call } from "./call.ts";
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
  /** The lanes in which somebody waits. */
  readonly waiting: readonly WaitingLane[];
  /** Until when lanes are held (epoch ms). */
  readonly holds: ReadonlyMap<string, number>;
  /** What falls due, the earliest first. */
  readonly due: readonly DueInLane[];
  /** The deadline up to which `due` has everything; undefined if to the end. */
  readonly seenUntil: number | undefined;
}

/** The lanes of a queue in which somebody waits, read in pages. */
export async function waitingLanes(queue: Queue, call?: Call): Promise<WaitingLane[]> {
  const found: WaitingLane[] = [];
  let from: Buffer | undefined = Buffer.alloc(0);
  while (from !== undefined) {
    const args: { from: Buffer; step: number } = { from, step: STEP };
    const page = await queue.read("look at the lanes of", lanePage, args, call);
    found.push(...page.lanes);
    from = page.next;
  }
  return found;
}

/** Until when lanes of a queue are held (epoch ms). */
async function holdsOf(queue: Queue, call?: Call): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  let cursor = "0";
  do {
    const page = await queue.read("look at the lanes of", heldLanes, { cursor }, call);
    for (const { lane, heldUntil } of page.lanes) found.set(lane, heldUntil);
    cursor = page.cursor;
  } while (cursor !== "0");
  return found;
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
  const waiting = await waitingLanes(queue, call);
  const holds = await holdsOf(queue, call);
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
