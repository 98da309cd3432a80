import { checkFollows } from "../../run/modes.ts";
import { ClosedError, RedisError } from "../../errors.ts";
import type { Counters } from "../../observe/counters.ts";
import type { TakeHeld } from "../../reliable/consuming/consuming.ts";
import type { Group, GroupSettings } from "../../reliable/group/group.ts";
import type { Held } from "../../reliable/group/held.ts";
import type { WaitOptions } from "../../run/waiters.ts";
import { sleep } from "../../time/sleep.ts";
import { Aside } from "./aside.ts";
import type { Tenure } from "./holding.ts";
import type { Lease } from "./lease.ts";
import type { Part } from "../parts/part.ts";
import type { PauseState } from "../../queue/pause-watch.ts";
import { queueTime } from "../../time/runtime.ts";
import type { ServerClock } from "../../time/server-clock.ts";

/**
 * Reads the stream of a partition while the lease lasts, one message at a time, as a separate consumer.
 *
 * It begins with the messages that its predecessors left in flight, and leaves its own in flight for its successor.
 * Giving them back instead would put them behind later messages. When the connection is lost, a lost reply may have
 * held an entry, which is then in flight. So the tenure ends, and the next one begins with that entry.
 *
 * A strict tenure keeps a failed message in flight until its pause is over. During the pause it reads on, and puts messages with
 * the same key {@link Aside}. The entry holds the end of the pause, so a successor waits for the rest of it. A script judges by the
 * server's clock whether the pause is over, and then counts the delivery; until then, the death of this process is no attempt.
 *
 * A tenure is always in exactly one mode:
 *
 * - **inheriting**: what its predecessors left in flight is not known. The first take asks for it, and puts it aside →
 *   *straight*. A failure → *ended*: the script may have run, so the next tenure inherits.
 * - **straight**: nothing is aside, so a take reads the stream and hands out what it gets. A message is put aside →
 *   *beside*.
 * - **beside**: messages are aside. A take hands out the next one that is no longer held back, and waits for it beside a
 *   read, which goes on while a handler runs: its reply must not be lost. Nothing is aside and no read is open →
 *   *straight*.
 * - **ended**: the lease is over, or is given up; its connection was lost; or an entry turned up that is held nowhere. No take
 *   returns any more. The running handler may finish.
 */
export class GroupTenure implements Tenure {
  readonly done: Promise<void>;
  readonly #lease: Lease;
  readonly #own: Group;
  readonly #pauses: PauseState;
  readonly #counters: Counters;
  readonly #name: string;
  readonly #clock: ServerClock;
  readonly #aside = new Aside();
  #mode: Mode = "inheriting";
  /** The delivery that was handed out last. */
  #current: Held | undefined;
  #isConnected = false;
  /** Why nothing could be inherited. Whoever takes has to report it, and to pause before the next tenure. */
  #failure: unknown;
  /** Ends the current wait, and all later ones. */
  readonly #ending = new AbortController();
  /** Ends the current wait beside a read; undefined while there is none. */
  #waking: AbortController | undefined;
  /** The read beside messages that are aside; undefined if none is open. */
  #read: Read | undefined;

  constructor(
    part: Part,
    lease: Lease,
    settings: GroupSettings & { readonly isStrict: boolean },
    consume: (take: TakeHeld) => Promise<void>,
  ) {
    this.#lease = lease;
    this.#pauses = part.pauses;
    this.#counters = part.queue.counters;
    this.#name = part.queue.name;
    this.#clock = part.queue.clock;
    this.#own = part.openExclusiveGroup(settings, {
      onConnected: (id, name) => this.#onConnected(id, name),
      onStranger: () => this.end(),
      keeping: settings.isStrict
        ? {
            onKept: (entry) => this.#putAside(this.#own.adopt([entry]), true),
            // The script may have run. The next tenure inherits the new entry first.
            onFailed: () => this.end(),
          }
        : undefined,
    });
    lease.signal.addEventListener("abort", () => {
      this.#current?.abort(lease.signal.reason);
      this.end();
    });
    this.done = this.#run(consume);
  }

  end(): void {
    if (this.#isEnded) return;
    this.#enter("ended");
    this.#ending.abort();
    // Settlements of the running handler are still sent, for as long as the client may take to close.
    void this.#own.stop();
  }

  /** Sets the mode. Nothing else does. */
  #enter(mode: Mode): void {
    checkFollows<Mode>(NEXT, this.#mode, mode);
    this.#mode = mode;
  }

  get #isEnded(): boolean {
    return this.#mode === "ended";
  }

  async #takeUntilEnded({ timeout }: WaitOptions): Promise<readonly Held[]> {
    for (;;) {
      if (this.#isEnded) throw new ClosedError("the lease");
      try {
        const taken = await this.#take(timeout);
        if (taken !== undefined) taken.lease = this.#lease;
        this.#current = taken;
        return taken === undefined ? [] : [taken];
      } catch (error) {
        if (!this.#isEnded || error === this.#failure) throw error;
      }
    }
  }

  async #run(consume: (take: TakeHeld) => Promise<void>): Promise<void> {
    if (this.#lease.signal.aborted) this.end();
    const unlisten = [
      this.#pauses.onChange(() => this.#wake()),
      this.#clock.onStep(() => {
        this.#aside.review();
        this.#wake();
      }),
    ];
    await consume((wait) => this.#takeUntilEnded(wait));
    for (const stop of unlisten) stop();
    this.#read?.outcome?.held?.lose();
    for (const held of this.#aside.all()) held.lose();
    await this.#own.stop();
    await this.#own.close();
  }

  async #onConnected(id: number, name: string): Promise<void> {
    if (this.#isConnected) {
      this.end();
      throw new ClosedError("the lease");
    }
    this.#isConnected = true;
    await this.#lease.note(id, name);
  }

  async #inherit(): Promise<void> {
    await this.#own.prepare({ signal: this.#ending.signal });
    const { member, settings } = this.#own;
    try {
      const { entries, buried } = await this.#lease.inherit(member, settings.maxAttempts);
      if (!this.#isEnded) this.#enter("straight");
      this.#putAside(this.#own.adopt(entries));
      this.#counters.dead += buried;
      this.#counters.reclaimed += entries.filter(({ isOrphan }) => isOrphan).length;
    } catch (error) {
      // The script may have run: the entries may be this consumer's already. The next tenure inherits them in order.
      this.end();
      this.#failure = error;
      throw error;
    }
  }

  /** Takes the next message; undefined if none came in time. */
  async #take(timeout: number): Promise<Held | undefined> {
    if (this.#mode === "inheriting") await this.#inherit();
    const endsAt = queueTime.now() + timeout;
    while (!this.#isEnded) {
      const left = endsAt - queueTime.now();
      const hasBeside = !this.#aside.isEmpty || this.#read !== undefined;
      if (this.#mode === "beside" && !hasBeside) this.#enter("straight");
      const isStraight = this.#mode === "straight";
      const taken = isStraight ? await this.#takeFresh(left) : await this.#takeAside(left);
      if (taken !== "none yet") return taken;
    }
    return undefined;
  }

  /** Takes the next message from the stream, while nothing is aside. */
  async #takeFresh(timeout: number): Promise<Held | undefined | "none yet"> {
    const [read] = await this.#own.take(1, { timeout, signal: this.#ending.signal });
    return read === undefined ? undefined : this.#unlessAside(read);
  }

  /** Takes a message that was aside, or waits for one of these and for the stream. */
  async #takeAside(timeout: number): Promise<Held | undefined | "none yet"> {
    if (this.#read?.outcome !== undefined) {
      const { held, error } = this.#read.outcome;
      this.#read = undefined;
      if (held === undefined) throw error;
      return this.#unlessAside(held);
    }
    if (this.#pauses.isPaused === undefined) await this.#askForPause();
    const isPaused = this.#pauses.isPaused !== false;
    const next = isPaused ? undefined : this.#aside.next(this.#own.now());
    if (next?.held !== undefined) return await this.#handOut(next.held);
    if (timeout <= 0) return undefined;
    if (this.#read === undefined && !this.#aside.isFull) void this.#readOn();
    this.#waking = new AbortController();
    const wait = Math.min(next?.wait ?? Infinity, timeout);
    await sleep(wait, this.#waking.signal, this.#ending.signal);
    this.#waking = undefined;
    return "none yet";
  }

  /** Reads one message, beside the handler of another. Never rejects. */
  async #readOn(): Promise<void> {
    this.#read = { outcome: undefined };
    let outcome: Read["outcome"];
    try {
      const [held] = await this.#own.take(1, { timeout: Infinity, signal: this.#ending.signal });
      outcome = { held };
    } catch (error) {
      outcome = { error };
    }
    const isAwaited = this.#waking !== undefined;
    this.#read = isAwaited || outcome.held === undefined ? { outcome } : undefined;
    if (!isAwaited && outcome.held !== undefined) this.#setAside(outcome.held);
    this.#wake();
  }

  /** Returns a message that was read, or puts it aside if it has to wait. */
  #unlessAside(read: Held): Held | "none yet" {
    // It may be held back if it waited when its partition was changed.
    if (read.entry.heldBackUntil === undefined && !this.#aside.hasBefore(read)) return read;
    this.#setAside(read);
    return "none yet";
  }

  /** Puts a message aside that was read. Redis has counted the read, which was no attempt. */
  #setAside(read: Held): void {
    this.#putAside([read]);
    void this.#own.settlements.setAside(read);
  }

  #putAside(found: readonly Held[], isKept = false): void {
    if (this.#mode === "straight" && found.length > 0) this.#enter("beside");
    for (const held of found) {
      this.#aside.put(held, isKept);
      // A consumer that is not exclusive may take it away. Then nothing has to wait for it.
      held.signal.addEventListener("abort", () => {
        this.#aside.review();
        this.#wake();
      });
    }
  }

  /** Hands out a message that is aside, if the script says that it is no longer held back. */
  async #handOut(held: Held): Promise<Held | "none yet"> {
    const { signal } = this.#ending;
    const rest = held.isHeld ? await this.#own.settlements.handOut(held, { signal }) : undefined;
    if (this.#isEnded) return "none yet";
    if (rest !== undefined && rest > 0) {
      this.#aside.postpone(held, this.#own.now() + rest);
      return "none yet";
    }
    this.#aside.remove(held);
    return held.isHeld ? held : "none yet";
  }

  /** Resolves once it is known whether the queue is paused, or the tenure has ended. */
  async #askForPause(): Promise<void> {
    try {
      await Promise.race([this.#pauses.known(), sleep(Infinity, this.#ending.signal)]);
    } catch (error) {
      throw new RedisError(`cannot take from partition "${this.#name}"`, error);
    }
  }

  #wake(): void {
    this.#waking?.abort();
  }
}

/** A read that is open beside messages that are aside. */
interface Read {
  /** What it returned, for the next take; undefined while it is under way. */
  readonly outcome: { readonly held?: Held | undefined; readonly error?: unknown } | undefined;
}

/** The modes of a {@link GroupTenure}, each with the modes that may follow it. */
const NEXT = {
  inheriting: ["straight", "ended"],
  straight: ["beside", "ended"],
  beside: ["straight", "ended"],
  ended: [],
} as const;

type Mode = keyof typeof NEXT;
