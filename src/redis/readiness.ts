import { UnansweredError } from "../failure.ts";
import { nextTick, queueTime } from "../time/runtime.ts";
import { isCluster, type RedisClient } from "./client.ts";
import { LentDatabase } from "./lent-client.ts";

/**
 * Whether a client is connected.
 *
 * ioredis keeps commands that it cannot send yet, and sends them later, however long that takes. So a call with a
 * time limit waits here first: a command that was not handed to ioredis is certainly not sent.
 */
export class Readiness {
  readonly #client: RedisClient;
  /** Of a lent client. */
  readonly database: LentDatabase | undefined;
  /** When the calls that had waited could be sent the last time (`queueTime.now()`). */
  readyAt = -Infinity;
  #pending: Promise<void> | undefined;
  #fail: ((reason: unknown) => void) | undefined;

  private constructor(client: RedisClient, isLent: boolean) {
    this.#client = client;
    // A Cluster has no databases.
    if (isLent && !isCluster(client)) this.database = new LentDatabase(client);
  }

  /** Returns the only instance for a client, which may be lent to several `Delayline`s. */
  static of(client: RedisClient, isLent = false): Readiness {
    let readiness = known.get(client);
    if (readiness === undefined) known.set(client, (readiness = new Readiness(client, isLent)));
    return readiness;
  }

  /**
   * Returns undefined if commands would be sent at once, and otherwise a promise that resolves when they would. All
   * callers share the promise, and so keep their order. It rejects with Redis's refusal if Redis rejects the
   * client's credentials or its database.
   *
   * @throws {UnansweredError} if the client has been ended.
   */
  wait(): Promise<void> | undefined {
    if (this.#client.status === "end") throw new UnansweredError("the connection is closed", false);
    if (this.#pending === undefined && !this.#isDecided) {
      // In the next tick: a caller that comes before the earlier ones have continued has to stay behind them.
      const end = () => nextTick(() => (this.#pending = undefined));
      this.#pending = this.#wait().finally(end);
      // Some callers only look whether there is anything to wait for.
      this.#pending.catch(ignore);
    }
    return this.#pending;
  }

  /** Rejects the current promise: Redis has rejected the client's credentials or its database. */
  fail(reason: unknown): void {
    this.#fail?.(reason);
  }

  async #wait(): Promise<void> {
    const client = this.#client;
    while (!this.#isDecided) {
      if (isConnected(client)) {
        await this.database?.check();
        continue;
      }
      const change = this.#nextChange();
      // ioredis connects a lazy client when it gets the first command.
      if (client.status === "wait") client.connect().catch(ignore);
      await change;
    }
    this.readyAt = queueTime.now();
  }

  get #isDecided(): boolean {
    if (this.#client.status === "end") return true;
    return isConnected(this.#client) && this.database?.isCertain !== false;
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

function isConnected({ status }: RedisClient): boolean {
  return status === "ready";
}

function ignore(): void {}
