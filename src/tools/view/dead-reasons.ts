import type { CallOptions, MessageId } from "../../index.ts";
import {
  added,
  checks,
  diedAtOf,
  foldReason,
  ids,
  isChosen,
  letterDeed,
  NO_CHANGE,
  type InsidePart,
  type LetterChange,
  type LetterFilter,
  type LetterHead,
} from "../../inside.ts";
import type { InspectedQueue } from "./inspector.ts";
import { entryAt } from "./sighting.ts";

/** The dead letters of one group that have one reason. */
export interface ReasonGroup {
  /** The reason as `foldReason` makes it. */
  readonly reason: string;
  /** The group that failed to handle the messages. */
  readonly group: string;
  /** Whether the letters have a foreign format: they can be removed, and not redriven. */
  readonly isUnreadable: boolean;
  readonly count: number;
  /** When the first of the messages died, and the last (epoch ms). */
  readonly firstDiedAt: number;
  readonly lastDiedAt: number;
  /** The whole reason of the last one, up to 1,000 bytes. */
  readonly example: string;
  /** What the letters say in full, up to 1,000 bytes each: that of most first, at most 20. */
  readonly variants: readonly Variant[];
  /** The last few messages. */
  readonly latest: readonly { readonly id: MessageId; readonly key: string | undefined }[];
}

/** Letters of a group with the very same reason. */
export interface Variant {
  readonly reason: string;
  readonly count: number;
  readonly firstDiedAt: number;
  readonly lastDiedAt: number;
}

/** Dead letters by their reason, as far as they were read. */
export interface DeadReasons {
  /** The groups, that with the most letters first. */
  readonly groups: readonly ReasonGroup[];
  /** How many letters are in none of `groups`, since those have 200 other reasons. */
  readonly others: number;
  /** How many letters were read. */
  readonly read: number;
  /** How many letters there were at the beginning. Where it is more than `read`, the counts are those of the oldest. */
  readonly total: number;
}

/** Options of {@link deadByReason}. */
export interface DeadReasonsOptions extends CallOptions {
  readonly filter?: LetterFilter;
  /** The most letters to read. Defaults to 100,000. */
  readonly most?: number;
}

/**
 * Counts the dead letters of a queue by reason. Yields what is known after each step of 40 letters, so a caller
 * may stop at any time; the last one is the result. Payloads stay in Redis. O(N): some 8 us of Redis's time per letter.
 *
 * @throws {RedisError} if Redis refuses or does not reply.
 */
export async function* deadByReason(
  queue: InspectedQueue,
  { filter = {}, most = 100_000, ...call }: DeadReasonsOptions = {},
): AsyncGenerator<DeadReasons, void, void> {
  const groups = new Map<string, Tally>();
  let [read, others, total] = [0, 0, 0];
  const state = (): DeadReasons => {
    const sorted = [...groups.values()].toSorted((a, b) => b.count - a.count);
    return { groups: sorted.map(asGroup), others, read, total };
  };
  const all = await lettersOf(queue, call);
  for (const { letters } of all) total += await letters.size(call);
  yield state();
  for (const { letters } of all) {
    for await (const heads of letters.heads(call)) {
      for (const head of heads) {
        if (read >= most) break;
        read++;
        if (!isChosen(head, filter)) continue;
        if (!tally(groups, head)) others++;
      }
      yield state();
      if (read >= most) return;
    }
  }
}

/** A group while it is being counted. */
type Tally = { -readonly [Name in keyof Omit<ReasonGroup, "variants">]: ReasonGroup[Name] } & {
  readonly variants: Map<string, { -readonly [Name in keyof Variant]: Variant[Name] }>;
};

function asGroup({ variants, ...group }: Tally): ReasonGroup {
  const sorted = [...variants.values()].toSorted((a, b) => b.count - a.count);
  return { ...group, variants: sorted.map((one) => ({ ...one })) };
}

/** Counts a letter among those with the very same reason, unless there are too many of these. */
function tallyVariant({ variants }: Tally, reason: string, diedAt: number): void {
  const known = variants.get(reason);
  if (known !== undefined) {
    known.count++;
    known.firstDiedAt = Math.min(known.firstDiedAt, diedAt);
    known.lastDiedAt = Math.max(known.lastDiedAt, diedAt);
  } else if (variants.size < MOST_VARIANTS) {
    variants.set(reason, { reason, count: 1, firstDiedAt: diedAt, lastDiedAt: diedAt });
  }
}

/** Counts a letter in its group; returns false if there are too many groups. */
function tally(groups: Map<string, Tally>, head: LetterHead): boolean {
  const reason = foldReason(head.reason);
  const { group, isReadable } = head;
  const name = JSON.stringify([isReadable, group, reason]);
  const diedAt = diedAtOf(head);
  const latest = { id: ids.messageIdAt(head.address), key: head.key };
  let known = groups.get(name);
  if (known === undefined) {
    if (groups.size >= MOST_GROUPS) return false;
    const times = { firstDiedAt: diedAt, lastDiedAt: diedAt };
    const found = { reason, group, isUnreadable: !isReadable, count: 0, ...times };
    known = { ...found, example: head.reason, latest: [], variants: new Map() };
    groups.set(name, known);
  }
  tallyVariant(known, head.reason, diedAt);
  known.count++;
  known.firstDiedAt = Math.min(known.firstDiedAt, diedAt);
  known.lastDiedAt = Math.max(known.lastDiedAt, diedAt);
  known.example = head.reason;
  known.latest = [latest, ...known.latest].slice(0, FEW);
  return true;
}

/** The most groups to tell apart, and the messages to name in each. */
const MOST_GROUPS = 200;
const FEW = 3;

/** The most different texts to tell apart in one group. */
const MOST_VARIANTS = 20;

/** Options of {@link changeLetters}. */
export interface LetterChangeOptions extends CallOptions {
  /** Milliseconds until a redriven message is due. Defaults to 0. */
  readonly delay?: number | undefined;
  /** Whether to count only. Defaults to false. */
  readonly isDry?: boolean | undefined;
}

/**
 * Redrives or removes the dead letters that the filter chooses, of those that exist when it begins; without a condition
 * all of them. Yields how far it has come after each step; the last one is the result. A caller may stop at any time.
 *
 * Unreadable letters cannot be redriven, and stay. O(N), also in the letters that are not chosen. Each step changes up to 25
 * letters at once, and a letter that another process has changed first is not counted.
 *
 * @throws {RangeError | TypeError} if `delay` is not legal.
 * @throws {RedisError} if Redis refuses or does not reply. What was done before is done.
 */
export async function* changeLetters(
  queue: InspectedQueue,
  change: "redrive" | "remove",
  filter: LetterFilter,
  { delay = 0, isDry = false, ...call }: LetterChangeOptions = {},
): AsyncGenerator<LetterChange, void, void> {
  checks.checkDuration("delay", delay);
  let sum: LetterChange = NO_CHANGE;
  try {
    for (const { letters } of await lettersOf(queue, call)) {
      const before = sum;
      for await (const step of letters.changeAll(change, filter, { delay, isDry }, call)) {
        sum = added(before, step);
        yield sum;
      }
    }
  } finally {
    // Also what was done before a failure, or before the caller stopped.
    if (!isDry) await queue.inside.note(letterDeed(change, filter, sum.done));
  }
  yield sum;
}

/**
 * Redrives or removes the letters in these spots (`Sighting.place`); returns how many. O(log N) for each. Ignores spots
 * whose letters are gone.
 *
 * @throws {RangeError | TypeError} if `delay` is not legal.
 * @throws {RedisError} if Redis refuses or does not reply. What was done before is done.
 */
export async function changeLettersAt(
  queue: InspectedQueue,
  change: "redrive" | "remove",
  spots: readonly string[],
  { delay = 0, ...call }: Omit<LetterChangeOptions, "isDry"> = {},
): Promise<number> {
  checks.checkDuration("delay", delay);
  let done = 0;
  for (const { partition, letters } of await lettersOf(queue, call)) {
    const entries = spots.flatMap((spot) => entryAt(spot, partition) ?? []);
    for (let i = 0; i < entries.length; i += FEW_UNKNOWN) {
      done += await changed(letters, change, entries.slice(i, i + FEW_UNKNOWN), delay, call);
    }
  }
  return done;
}

async function changed(
  letters: InsidePart["letters"],
  change: "redrive" | "remove",
  entries: readonly string[],
  delay: number,
  call: CallOptions,
): Promise<number> {
  return change === "redrive"
    ? await letters.redrive(entries, delay, call)
    : await letters.remove(entries, call);
}

/** Letters per script if their sizes are not known. */
const FEW_UNKNOWN = 5;

/** The dead letters of each part; none of a plain queue. */
async function lettersOf({ inside, deadLetters }: InspectedQueue, call: CallOptions) {
  if (deadLetters === undefined) return [];
  const parts = await inside.parts(call);
  return parts.map(({ label, letters }) => ({ partition: label, letters }));
}
