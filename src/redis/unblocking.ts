import { RedisError } from "../errors.ts";
import type { Work } from "./troubles.ts";

/** Ends the block of a connection with CLIENT UNBLOCK from another connection. The reply to the block still comes. */
export class Unblocking {
  readonly #doing: string;
  readonly #work: Work;
  #underWay: Promise<void> | undefined;

  /** `waiter` is the name of the waiting queue in errors, such as `queue "orders"`. */
  constructor(waiter: string, work: Work) {
    this.#doing = `cannot end the wait of ${waiter}`;
    this.#work = work;
  }

  /** Calls `unblock` for as long as the block `isInVain`, unless it is doing so already. */
  start(unblock: () => Promise<void> | undefined, isInVain: () => boolean): void {
    if (this.#underWay !== undefined || !isInVain()) return;
    this.#underWay = this.#run(unblock, isInVain);
  }

  /** Resolves when nothing is under way. Call it once no further block has to be ended. */
  async close(): Promise<void> {
    await this.#underWay;
    this.#work.ended();
  }

  /** Never rejects. */
  async #run(unblock: () => Promise<void> | undefined, isInVain: () => boolean): Promise<void> {
    try {
      while (isInVain()) {
        // If the connection was not blocked, this command overtook the blocking one. If it was, the reply is under
        // way. Look again in both cases: it may be blocked then.
        await unblock();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      this.#work.succeeded();
    } catch (error) {
      // The block ended by itself meanwhile.
      if (!isInVain()) return;
      // The block ends by itself within two seconds.
      this.#work.failed(new RedisError(this.#doing, error));
      this.#work.stopped();
    } finally {
      this.#underWay = undefined;
    }
  }
}
