import type { Redis } from "ioredis";

/**
 * Finds a connection that died silently.
 *
 * When the other end of a TCP connection vanishes without a word, nothing is received and nothing
 * fails, for minutes. So a PING goes out every second, and where no answer comes within two, the
 * connection is given up: `onSilence` is called, again each second, until an answer comes.
 */
export class Heartbeat {
  readonly #connection: Redis;
  readonly #onSilence: () => void;
  readonly #interval: NodeJS.Timeout;
  #askedAt: number | undefined;

  constructor(connection: Redis, onSilence: () => void) {
    this.#connection = connection;
    this.#onSilence = onSilence;
    this.#interval = setInterval(() => this.#beat(), 1000).unref();
  }

  /** Whether an answer is overdue. */
  get isSilent(): boolean {
    return this.#askedAt !== undefined && performance.now() - this.#askedAt >= 2000;
  }

  stop(): void {
    clearInterval(this.#interval);
  }

  #beat(): void {
    const connection = this.#connection;
    // While ioredis connects it has a time-out of its own.
    if (connection.status !== "ready") {
      this.#askedAt = undefined;
      return;
    }
    if (this.#askedAt === undefined) {
      const askedAt = (this.#askedAt = performance.now());
      connection.ping().then(
        () => this.#answered(askedAt),
        () => this.#answered(askedAt),
      );
    } else if (this.isSilent) {
      this.#onSilence();
    }
  }

  #answered(askedAt: number): void {
    if (this.#askedAt === askedAt) this.#askedAt = undefined;
  }
}
