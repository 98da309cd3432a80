import { readFact } from "../../lua/partitions/fact.ts";
import type { Call } from "../../queue/call.ts";
import { formatFact, isLater, parseFact, type Fact } from "../ring/fact.ts";
import { loadFact, type Creation } from "./creation.ts";
import { MEMBER_TIMEOUT } from "./member.ts";
import type { Part } from "./part.ts";
import { isRefusedByFact } from "./refusal.ts";
import { gather } from "./went-back.ts";
import { orAborted } from "../../time/abort.ts";
import { nextTick, queueTime } from "../../time/runtime.ts";

/**
 * This client's knowledge of the number of partitions of one queue.
 *
 * The client asks partition 0 for the fact once, or another server if that of partition 0 cannot be reached. After that
 * it learns newer facts from notices on a channel, from the reply to each sign of life (see {@link Members}), and from
 * scripts that Redis refuses because their fact is old. Such refusals make it safe to learn of a change late.
 */
export class FactWatch {
  readonly #queue: string;
  readonly #first: Part;
  readonly #creation: Creation;
  readonly #onChange: () => void;
  #fact: Fact | undefined;
  /** See {@link confirm}. */
  #confirmedAt = -Infinity;
  #loading: Promise<Fact> | undefined;
  #catchingUp: Promise<void> | undefined;
  #through: "commands" | "background" = "commands";

  /** `onChange` is called whenever a newer fact is known. */
  constructor(queue: string, first: Part, creation: Creation, onChange: () => void) {
    this.#queue = queue;
    this.#first = first;
    this.#creation = creation;
    this.#onChange = onChange;
  }

  /** The latest known fact; undefined before {@link known} has resolved for the first time. */
  get fact(): Fact | undefined {
    return this.#fact;
  }

  /** The same as Redis holds it. */
  get text(): string | undefined {
    return this.#fact && formatFact(this.#fact);
  }

  /** The channel on which changes are published. */
  get notice(): string {
    return `${this.#first.queue.keys.partitions}:notice`;
  }

  /**
   * Returns the known fact. The first call asks Redis for it, and creates the partitions if there are none.
   *
   * @throws {RedisError} if Redis cannot be asked.
   * @throws {TypeError} if the queue is on another number of servers than this client, or has no partitions and this
   * client does not know how many to create.
   */
  known(call?: Call): Promise<Fact> {
    // While the first callers wait, others queue up behind them, though the fact may be known from elsewhere.
    const isKnown = this.#fact !== undefined && this.#loading === undefined;
    return isKnown ? Promise.resolve(this.#fact as Fact) : this.#loaded(call);
  }

  /**
   * Returns a fact that is at most {@link FRESH} milliseconds old: asks again unless a recent sign of life has returned
   * it. For calls that no script checks against the fact, such as counting messages.
   */
  async fresh(call?: Call): Promise<Fact> {
    const isFresh = queueTime.now() - this.#confirmedAt < FRESH;
    return this.#fact !== undefined && isFresh ? this.#fact : await this.ask(call);
  }

  /** Asks for the current fact. If Redis went back to an earlier one, it is that which begins to {@link gather}. */
  async ask(call?: Call): Promise<Fact> {
    const known = this.#fact;
    if (known === undefined) return await this.#loaded(call);
    const { queue } = this.#first;
    const options = { ...call, knownFact: formatFact(known) };
    try {
      await queue.read("ask for the partitions of", readFact, {}, options);
    } catch (error) {
      if (!isRefusedByFact(error)) throw error;
      return await this.newerThan(known, error, call);
    }
    return this.#fact ?? known;
  }

  /**
   * Returns the fact to go on with after Redis has refused a script because of `fact`. If no newer one is known, Redis
   * went back, and messages have to be gathered.
   *
   * @throws `error` if that did not help.
   */
  async newerThan(fact: Fact, error: unknown, call?: Call): Promise<Fact> {
    if (this.#fact?.epoch === fact.epoch) await orAborted(this.#catchUp(), call?.signal);
    const newer = this.#fact;
    if (newer === undefined || newer.epoch === fact.epoch) throw error;
    return newer;
  }

  /** Notes that Redis has refused a script because of the fact `sent` with it, and what it holds instead. */
  refused(held: string, sent: string): void {
    this.learn(held);
    const [there, here] = [parseFact(held), parseFact(sent)];
    if (here === undefined || (there !== undefined && isLater(there, here))) return;
    // A call that was refused waits for this, and learns why it fails.
    this.#catchUp().catch(() => {});
  }

  /** Begins to gather messages, as all known facts demand; once for all concurrent callers. */
  #catchUp(): Promise<void> {
    const known = this.#fact;
    if (known === undefined) return Promise.resolve();
    this.#catchingUp ??= gather(known, this.#creation.at, this.notice, MEMBER_TIMEOUT)
      .then((fact) => this.learn(fact))
      .finally(() => (this.#catchingUp = undefined));
    return this.#catchingUp;
  }

  /** Adopts a fact, unless a later one is known or it is malformed. */
  learn(text: string): void {
    const fact = parseFact(text);
    if (fact === undefined) return;
    if (this.#fact !== undefined && !isLater(fact, this.#fact)) return;
    this.#fact = fact;
    this.#onChange();
  }

  /** Notes that the known fact was current at the instant `at` (`queueTime.now()`). */
  confirm(at: number): void {
    this.#confirmedAt = at;
  }

  /** Loads the fact over the background connection from now on. */
  useBackground(): void {
    this.#through = "background";
  }

  /**
   * Loads the fact once for all concurrent callers, which go on in the order in which they came; each stops waiting when
   * its own signal is aborted.
   */
  #loaded(call?: Call): Promise<Fact> {
    this.#loading ??= this.#load().finally(() => {
      // Not at once: a caller that comes before the earlier ones have gone on is behind them.
      nextTick(() => (this.#loading = undefined));
    });
    return orAborted(this.#loading, call?.signal);
  }

  async #load(): Promise<Fact> {
    const { notice } = this;
    this.learn(await loadFact(this.#queue, this.#first, this.#creation, notice, this.#through));
    return this.#fact as Fact;
  }
}

/** Milliseconds for which a confirmed fact counts as fresh. */
const FRESH = 3000;
