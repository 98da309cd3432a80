import { RedisError } from "../errors.ts";
import type { Work } from "./troubles.ts";

/** Ends the block of a connection by CLIENT UNBLOCK from another one. The block's reply still comes. */
export class Unblocking {
  readonly #doing: string;
  readonly #work: Work;
  #underWay: Promise<void> | undefined;

  /** `who` is what errors call the one that waits. */
  constructor(who: string, work: Work) {
    this.#doing = `cannot end the wait of ${who}`;
    this.#work = work;
  }

  /** Asks by `unblock` for as long as the block `isInVain`, unless that is under way already. */
  start(unblock: () => Promise<void> | undefined, isInVain: () => boolean): void {
    if (this.#underWay !== undefined || !isInVain()) return;
    this.#underWay = this.#run(unblock, isInVain);
  }

  /** Resolves when nothing is under way. */
  async ended(): Promise<void> {
    await this.#underWay;
  }

  /** Never rejects. */
  async #run(unblock: () => Promise<void> | undefined, isInVain: () => boolean): Promise<void> {
    try {
      while (isInVain()) {
        // If it was not blocked, the other connection was faster, and the command has not arrived yet. If
        // it was, its reply is under way. Look again in both cases: by then it may block once more.
        await unblock();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      this.#work.succeeded();
    } catch (error) {
      // It has ended by itself meanwhile, and nobody needs this any more.
      if (!isInVain()) return;
      // The block ends by itself, two seconds later.
      this.#work.failed(new RedisError(this.#doing, error));
      this.#work.stopped();
    } finally {
      this.#underWay = undefined;
    }
  }
}
