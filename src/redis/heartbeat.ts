import type { Redis } from "ioredis";
import { clearInterval, performance, setInterval } from "../time/network.ts";

/**
 * Notices that a connection has gone silent.
 *
 * When the other end of a TCP connection vanishes without a word, nothing arrives and nothing fails for minutes. So
 * the heartbeat sends a command every second. If no reply comes within two seconds, it calls `onSilence` every second
 * until a reply comes.
 */
export class Heartbeat {
  readonly #connection: Redis;
  readonly #ask: () => Promise<unknown>;
  readonly #onSilence: () => void;
  readonly #interval: NodeJS.Timeout;
  #askedAt: number | undefined;
  #connectedAt: number | undefined;

  /** `ask` sends a command to which Redis replies at once. */
  constructor(connection: Redis, ask: () => Promise<unknown>, onSilence: () => void) {
    this.#connection = connection;
    this.#ask = ask;
    this.#onSilence = onSilence;
    this.#interval = setInterval(() => this.#beat(), 1000).unref();
  }

  /** Whether a reply is overdue. */
  get isSilent(): boolean {
    return this.#askedAt !== undefined && performance.now() - this.#askedAt >= SILENCE;
  }

  close(): void {
    clearInterval(this.#interval);
  }

  #beat(): void {
    const connection = this.#connection;
    if (connection.status !== "ready") {
      this.#askedAt = undefined;
      // ioredis limits the time to connect, but not the handshake that follows.
      const isConnected = connection.status === "connect";
      this.#connectedAt = isConnected ? (this.#connectedAt ?? performance.now()) : undefined;
      if (performance.now() - (this.#connectedAt ?? Infinity) > HANDSHAKE) {
        connection.disconnect(true);
      }
      return;
    }
    this.#connectedAt = undefined;
    if (this.#askedAt === undefined) {
      const askedAt = (this.#askedAt = performance.now());
      this.#ask().then(
        () => this.#onReply(askedAt),
        () => this.#onReply(askedAt),
      );
    } else if (this.isSilent) {
      this.#onSilence();
    }
  }

  #onReply(askedAt: number): void {
    if (this.#askedAt === askedAt) this.#askedAt = undefined;
  }
}

/** Milliseconds without a reply. A little below 2 s, so the second beat after the command finds it overdue. */
const SILENCE = 1900;

/** Milliseconds that a connection may take from connecting until it is ready. */
const HANDSHAKE = 3000;
