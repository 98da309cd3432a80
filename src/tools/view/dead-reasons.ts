import type { CallOptions, MessageId } from "../../index.ts";
import { checks, ids, type InsidePart, type LetterHead } from "../../inside.ts";
import type { InspectedQueue } from "./inspector.ts";
import { entryAt } from "./sighting.ts";

/**
 * The reason without what differs from message to message: numbers, hexadecimal words, UUIDs and addresses become `#`.
 * Of several lines, the first counts. So letters with one cause have one folded reason, such as
 * `connect ETIMEDOUT #:#`.
 */
export function foldReason(reason: string): string {
  const [line = ""] = reason.trimStart().split(/\r?\n/, 1);
  const folded = line
    .slice(0, LONGEST)
    // A UUID or another word of hexadecimal digits, of which one at least is decimal.
    .replaceAll(/\b(?=[\da-f-]*\d)[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/gi, "#")
    .replaceAll(/\b(?:0x[\da-f]+|(?=[\da-f]*\d)[\da-f]{8,})\b/gi, "#")
    // Numbers with their points, commas and signs: an IPv4 address is one of them.
    .replaceAll(/\d+(?:[.,]\d+)*/g, "#");
  return folded.trim();
}

/** The most characters of a reason that its group goes by. */
const LONGEST = 200;

/** Which dead letters are meant. A letter has to meet every condition that is given. */
export interface LetterFilter {
  /** The whole reason, or the reason as {@link foldReason} makes it. */
  readonly reason?: string | undefined;
  /** The group that failed to handle the message. */
  readonly group?: string | undefined;
  /** An instant (epoch ms on the server's clock): only letters of messages that died before it. */
  readonly diedBefore?: number | undefined;
  /** The beginning of the business key. */
  readonly prefix?: string | undefined;
}

/** The dead letters of one group that have one reason. */
export interface ReasonGroup {
  /** The reason as {@link foldReason} makes it. */
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
  /** The last few messages. */
  readonly latest: readonly { readonly id: MessageId; readonly key: string | undefined }[];
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
    return { groups: sorted.map((group) => ({ ...group })), others, read, total };
  };
  const all = await lettersOf(queue, call);
  for (const { letters } of all) total += await letters.size(call);
  yield state();
  for (const { letters } of all) {
    for await (const heads of letters.heads(call)) {
      for (const head of heads) {
        if (read >= most) break;
        read++;
        if (!matches(head, filter)) continue;
        if (!tally(groups, head)) others++;
      }
      yield state();
      if (read >= most) return;
    }
  }
}

/** A group while it is being counted. */
type Tally = { -readonly [Name in keyof ReasonGroup]: ReasonGroup[Name] };

/** Counts a letter in its group; returns false if there are too many groups. */
function tally(groups: Map<string, Tally>, head: LetterHead): boolean {
  const reason = foldReason(head.reason);
  const { group, isReadable } = head;
  const name = JSON.stringify([isReadable, group, reason]);
  const diedAt = diedAtOf(head);
  const latest = { id: ids.messageIdAt(head.address), key: head.key };
  const known = groups.get(name);
  if (known === undefined) {
    if (groups.size >= MOST_GROUPS) return false;
    const times = { firstDiedAt: diedAt, lastDiedAt: diedAt };
    const found = { reason, group, isUnreadable: !isReadable, count: 1, ...times };
    groups.set(name, { ...found, example: head.reason, latest: [latest] });
    return true;
  }
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

/** How far a change of dead letters has come. */
export interface LetterChange {
  /** How many letters were looked at. */
  readonly looked: number;
  /** How many of them the filter chose, and the change can be made to. */
  readonly matched: number;
  /** How many were changed. */
  readonly done: number;
}

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
 * Unreadable letters cannot be redriven, and stay. O(N), also in the letters that are not chosen. Each step changes up to 25 letters at once, and a letter that somebody else has changed meanwhile
 * is not counted.
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
  let [looked, matched, done] = [0, 0, 0];
  for (const { letters } of await lettersOf(queue, call)) {
    for await (const heads of letters.heads(call)) {
      const chosen = heads.filter(
        (head) => matches(head, filter) && (change === "remove" || head.isReadable),
      );
      looked += heads.length;
      matched += chosen.length;
      if (!isDry) {
        for (const batch of batched(chosen)) {
          const entries = batch.map(({ entryId }) => entryId);
          done += await changed(letters, change, entries, delay, call);
        }
      }
      yield { looked, matched, done };
    }
  }
  yield { looked, matched, done };
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

/** Cuts letters into batches that one script may write. */
function* batched(heads: readonly LetterHead[]): Generator<readonly LetterHead[]> {
  let batch: LetterHead[] = [];
  let bytes = 0;
  for (const head of heads) {
    if (batch.length >= BATCH || (batch.length > 0 && bytes + head.size > BATCH_BYTES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(head);
    bytes += head.size;
  }
  if (batch.length > 0) yield batch;
}

/** Letters per script that writes messages again, and their bytes: about 500 us of Redis's time. */
const BATCH = 25;
const BATCH_BYTES = 65_536;

/** Letters per script if their sizes are not known. */
const FEW_UNKNOWN = 5;

/** The dead letters of each part; none of a plain queue. */
async function lettersOf({ inside, deadLetters }: InspectedQueue, call: CallOptions) {
  if (deadLetters === undefined) return [];
  const parts = await inside.parts(call);
  return parts.map(({ label, letters }) => ({ partition: label, letters }));
}

function matches(head: LetterHead, { reason, group, diedBefore, prefix }: LetterFilter): boolean {
  return (
    (group === undefined || head.group === group) &&
    (diedBefore === undefined || diedAtOf(head) < diedBefore) &&
    (prefix === undefined || (head.key ?? "").startsWith(prefix)) &&
    (reason === undefined || head.reason === reason || foldReason(head.reason) === reason)
  );
}

/** When the message died (epoch ms). */
function diedAtOf({ entryId }: LetterHead): number {
  return Number(entryId.split("-")[0]);
}
