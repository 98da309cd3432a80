import {
  tidyAddresses,
  tidyMembers,
  tidyBusinessKeys,
  type TidyReply,
  type Untidy,
} from "../../lua/delayed/tidy.ts";
import { heldFact } from "../../lua/guarded.ts";
import { forgetOnce } from "../../lua/queue/once.ts";
import type { Queue } from "../../queue/queue.ts";
import { Task } from "../../run/task.ts";
import { Pause } from "../../time/pause.ts";

/**
 * Removes what messages of one queue leave behind: dead elements of the insertion order, dead entries of the index of
 * business keys, and expired memories of messages that were offered with `once`.
 *
 * It works in bounded steps, one at a time; transfers run between them. It starts when this process has moved a hundred
 * messages, or when a sweep has found something to tidy, whichever process left it, since a killed process tidies
 * nothing.
 */
export class Tidier {
  readonly #queue: Queue;
  readonly #task: Task;

  /** Messages moved since the insertion order was last tidied. */
  #movedCount = 0;
  #found: Untidy = TIDY;

  constructor(queue: Queue) {
    this.#queue = queue;
    this.#task = new Task(
      () => this.#tidy(),
      `cannot tidy queue "${queue.name}"`,
      queue.server.troubles.work(),
      // No retry: the next sweep finds the same work again.
      new Pause(Infinity, Infinity),
    );
  }

  /** Notes how many messages were moved, and what a sweep found to tidy. */
  note(movedCount: number, found: Untidy = TIDY): void {
    this.#movedCount += movedCount;
    this.#found = {
      order: this.#found.order || found.order,
      businessKeys: this.#found.businessKeys || found.businessKeys,
      once: this.#found.once || found.once,
    };
    const due = this.#due;
    if (due.order || due.businessKeys || due.once) this.#task.wake();
  }

  /** Stops; resolves once no step is under way. */
  close(): Promise<void> {
    return this.#task.close();
  }

  /** What has to be tidied now. */
  get #due(): Untidy {
    // With whole members as elements (interop "redisson"), a moved message leaves no element behind.
    const isMany = this.#queue.layout.elements === "addresses" && this.#movedCount >= TIDY_AFTER;
    return { ...this.#found, order: this.#found.order || isMany };
  }

  /** Returns the milliseconds until it has to be called again: it is woken. */
  async #tidy(): Promise<number> {
    const { order, businessKeys, once } = this.#due;
    this.#movedCount = 0;
    this.#found = TIDY;
    try {
      const { elements } = this.#queue.layout;
      if (order) await (elements === "members" ? this.#tidyMembers() : this.#tidyAddresses());
      if (businessKeys) await this.#tidyBusinessKeys();
      if (once) await this.#forgetOnce();
    } catch (error) {
      if (heldFact(error) === undefined) throw error;
    }
    return Infinity;
  }

  async #tidyAddresses(): Promise<void> {
    const { background } = this.#queue.server.connections;
    let next: TidyReply = { hasMore: true, thorough: 0 };
    while (next.hasMore && !this.#task.isStopped) {
      const { thorough } = next;
      const step = thorough === 1 ? THOROUGH_STEP : STEP;
      next = await this.#queue.run(background, tidyAddresses, { step, thorough });
    }
  }

  async #tidyMembers(): Promise<void> {
    const args = { step: THOROUGH_STEP };
    while (!this.#task.isStopped) {
      if (!(await this.#queue.run(this.#queue.server.connections.background, tidyMembers, args)))
        return;
    }
  }

  async #tidyBusinessKeys(): Promise<void> {
    let cursor = "0";
    do {
      const args = { cursor, step: STEP };
      cursor = await this.#queue.run(
        this.#queue.server.connections.background,
        tidyBusinessKeys,
        args,
      );
    } while (cursor !== "0" && !this.#task.isStopped);
  }

  async #forgetOnce(): Promise<void> {
    const args = { limit: THOROUGH_STEP };
    while (!this.#task.isStopped) {
      if (!(await this.#queue.run(this.#queue.server.connections.background, forgetOnce, args)))
        return;
    }
  }
}

const TIDY: Untidy = { order: false, businessKeys: false, once: false };

/** The insertion order is tidied whenever this process has moved this many messages. */
const TIDY_AFTER = 100;

/** Elements of the insertion order, or keys, per step: some 200 microseconds of Redis's time. */
const STEP = 300;

/** Elements or records per step that looks each of them up: some 300 microseconds. */
const THOROUGH_STEP = 50;
