import { UnansweredError } from "../failure.ts";
import type { RedisClient } from "./client.ts";

/**
 * Tells when a client is connected.
 *
 * ioredis keeps commands that it cannot send yet, and sends them when it can, however long that takes.
 * So a call that has a time bound waits here first: what was not handed to ioredis is surely not sent.
 */
export class Readiness {
  readonly #client: RedisClient;
  #waiting: Promise<void> | undefined;
  #fail: ((reason: unknown) => void) | undefined;

  private constructor(client: RedisClient) {
    this.#client = client;
  }

  /** One for each client, which may have been lent to many of us. */
  static of(client: RedisClient): Readiness {
    let readiness = known.get(client);
    if (readiness === undefined) known.set(client, (readiness = new Readiness(client)));
    return readiness;
  }

  /**
   * Returns undefined if commands are sent at once; otherwise a promise that resolves when they are. All
   * who come meanwhile wait for the same promise, and so keep their order. It rejects with Redis's reply if
   * Redis does not let us in.
   *
   * @throws {UnansweredError} if the client has been ended.
   */
  wait(): Promise<void> | undefined {
    if (this.#client.status === "end") throw new UnansweredError("the connection is closed", false);
    if (this.#waiting === undefined && !isDecided(this.#client)) {
      // Not at once: whoever comes before those who waited have gone on has to wait behind them.
      const end = () => process.nextTick(() => (this.#waiting = undefined));
      this.#waiting = this.#wait().finally(end);
    }
    return this.#waiting;
  }

  /** Those who wait now wait in vain: Redis does not let us in. Their promise rejects with this reason. */
  fail(reason: unknown): void {
    this.#fail?.(reason);
  }

  async #wait(): Promise<void> {
    const client = this.#client;
    while (!isDecided(client)) {
      const change = this.#nextChange();
      // ioredis connects a lazy client when it gets the first command.
      if (client.status === "wait") client.connect().catch(ignore);
      await change;
    }
  }

  /** Resolves when the client becomes ready or ends. No listener stays behind. */
  #nextChange(): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.#client.off("ready", change);
        this.#client.off("end", change);
      };
      const change = () => {
        stop();
        resolve();
      };
      this.#fail = (reason) => {
        stop();
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors
        reject(reason);
      };
      this.#client.on("ready", change);
      this.#client.on("end", change);
    });
  }
}

const known = new WeakMap<RedisClient, Readiness>();

function isDecided({ status }: RedisClient): boolean {
  return status === "ready" || status === "end";
}

function ignore(): void {}
