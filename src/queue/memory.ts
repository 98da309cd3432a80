import type { TransferReply } from "../lua/delayed/transfer.ts";
import type { Past } from "../lua/queue/look-back.ts";
import { isRefusedForNow, replyOf } from "../failure.ts";
import { BOUND, type Verdict, type Witness } from "../redis/fuse.ts";
import { networkTime } from "../time/runtime.ts";

/** What Redis has shown of a queue. */
interface Shown {
  /** When it did, on this process's clock. */
  readonly at: number;
  /** The last claim that a task moves messages (epoch ms). */
  readonly claimedAt: number | undefined;
  /** An instant (epoch ms) at which no message was due. */
  readonly doneAt: number | undefined;
}

/**
 * What this process remembers of a queue, to notice that Redis went back to an older copy of its data. It learns from
 * the replies to transfers, so it costs no command.
 *
 * Only what Redis had shown for {@link BOUND} before it was last heard counts: a failover may lose what is younger. An
 * older claim in its place shows that Redis went back. If there is none, a message shows it that was offered and due
 * before an instant at which nothing was due.
 *
 * A step of the server's clock shows neither, since claims only grow. Nor does a key that was deleted or evicted:
 * nothing contradicts this process then.
 */
export class Memory implements Witness {
  readonly #queue: string;
  readonly #look: () => Promise<Past>;
  /** The oldest first. The first one is the newest that counts, if any does. */
  #shown: Shown[] = [];

  /** `look` asks Redis for the queue's past. It rejects with ioredis's errors. */
  constructor(queue: string, look: () => Promise<Past>) {
    this.#queue = queue;
    this.#look = look;
  }

  get isEmpty(): boolean {
    return this.#shown.length === 0;
  }

  /** The last claim (epoch microseconds); 0 if none is known. */
  get claimedAt(): number {
    return Math.round((this.#shown.at(-1)?.claimedAt ?? 0) * 1000);
  }

  /** Notes what a transfer has replied. */
  note({ claimedAt, next, serverTime, isPaused }: TransferReply): void {
    const last = this.#shown.at(-1);
    const doneAt = isPaused !== true && next > serverTime ? serverTime : undefined;
    this.#add({
      at: networkTime.now(),
      claimedAt: claimedAt ?? last?.claimedAt,
      doneAt: doneAt ?? last?.doneAt,
    });
  }

  async examine(heardAt: number): Promise<Verdict> {
    const past = await this.#ask();
    if (past === undefined) return { sign: undefined, accept: () => {} };
    const knownAt = this.#knownIfLost(past, heardAt);
    const queue = this.#queue;
    return {
      sign: knownAt === undefined ? undefined : { queue, knownAt, foundAt: past.claimedAt },
      accept: () => this.#accept(past),
    };
  }

  #add(shown: Shown): void {
    const [last, before] = [this.#shown.at(-1), this.#shown.at(-2)];
    // Not by the age of the last one alone: after a quiet time what it says would count from now on.
    if (last !== undefined && before !== undefined && shown.at - before.at < STEP)
      this.#shown.pop();
    this.#shown.push(shown);
    while ((this.#shown[1]?.at ?? Infinity) <= shown.at - BOUND) this.#shown.shift();
  }

  /** Undefined if this process may not look. */
  async #ask(): Promise<Past | undefined> {
    try {
      return await this.#look();
    } catch (error) {
      if (replyOf(error) === undefined || isRefusedForNow(error)) throw error;
      return undefined;
    }
  }

  /**
   * The newest instant that Redis had shown (epoch ms), if it now shows an older copy; `heardAt` is when it was last heard
   * before.
   */
  #knownIfLost(past: Past, heardAt: number): number | undefined {
    const last = this.#shown.at(-1);
    const until = Math.max(heardAt, last?.at ?? -Infinity) - BOUND;
    const lasting = this.#shown.findLast(({ at }) => at <= until);
    if (last === undefined || lasting === undefined) return undefined;
    const isLost = past.isClaimed
      ? isBefore(past.claimedAt, lasting.claimedAt)
      : lasting.doneAt !== undefined &&
        isBefore(past.deadline, lasting.doneAt) &&
        isBefore(past.offeredAt, lasting.doneAt - ESTIMATED);
    return isLost ? Math.max(last.claimedAt ?? 0, last.doneAt ?? 0) : undefined;
  }

  /** From now on what Redis shows counts. */
  #accept({ claimedAt }: Past): void {
    const { claimedAt: known = claimedAt } = this.#shown.at(-1) ?? {};
    if (isBefore(claimedAt, known) || (claimedAt === undefined && known !== undefined))
      this.#shown = [{ at: networkTime.now(), claimedAt, doneAt: undefined }];
  }
}

/** Whether both instants are known, and the first is earlier. */
function isBefore(one: number | undefined, other: number | undefined): boolean {
  return one !== undefined && other !== undefined && one < other;
}

/** Milliseconds by which the instant in an id, which is an estimate of the producer, may be wrong. */
const ESTIMATED = 1000;

/** Milliseconds between two memories, about. */
const STEP = BOUND / 10;
