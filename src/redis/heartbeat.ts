import type { Redis } from "ioredis";
import { networkTime } from "../time/runtime.ts";
import { Progress, SILENCE } from "./progress.ts";

/** How a {@link Heartbeat} asks. */
export interface Beats {
  /** Sends a command to which Redis replies at once. */
  readonly ask: () => Promise<unknown>;
  /** Called every second while a reply is overdue and nothing comes. */
  readonly onSilence: () => void;
  /** Milliseconds between two questions while nothing waits for a reply. */
  readonly every: number;
  /** Whether a caller wants to know at once that Redis replies. */
  readonly isWanted?: () => boolean;
}

/**
 * Notices that a connection has gone silent.
 *
 * When the other end of a TCP connection vanishes without a word, nothing arrives and nothing fails for minutes. So the
 * heartbeat looks every second. It sends a command if another one waits for its reply, and else from time to time. If
 * no reply comes within two seconds, and no byte either, it calls `onSilence` every second until something comes; see
 * {@link Progress}.
 */
export class Heartbeat {
  readonly #connection: Redis;
  readonly #beats: Beats;
  readonly #progress: Progress;
  readonly #interval: NodeJS.Timeout;
  #askedAt: number | undefined;
  /** When the last question was sent on this connection. */
  #lastAskedAt = -Infinity;
  #connectedAt: number | undefined;

  constructor(connection: Redis, beats: Beats) {
    this.#connection = connection;
    this.#beats = beats;
    this.#progress = Progress.of(connection);
    this.#interval = networkTime.setInterval(() => this.#look(), LOOK).unref();
  }

  /** Whether a reply is overdue. */
  get isOverdue(): boolean {
    return this.#askedAt !== undefined && networkTime.now() - this.#askedAt >= SILENCE;
  }

  /** Whether a reply is overdue, and the connection stands still. */
  get isSilent(): boolean {
    return this.isOverdue && this.#progress.hasStoodStill(SILENCE);
  }

  /** Asks now, unless a question is under way or the connection is not ready. */
  ask(): void {
    if (this.#askedAt !== undefined || this.#connection.status !== "ready") return;
    const askedAt = (this.#askedAt = this.#lastAskedAt = networkTime.now());
    this.#beats.ask().then(
      () => this.#onReply(askedAt),
      () => this.#onReply(askedAt),
    );
  }

  close(): void {
    networkTime.clearInterval(this.#interval);
  }

  #look(): void {
    const connection = this.#connection;
    if (connection.status !== "ready") {
      this.#askedAt = undefined;
      // A new connection is asked first of all.
      this.#lastAskedAt = -Infinity;
      // ioredis limits the time to connect, but not the handshake that follows.
      const isConnected = connection.status === "connect";
      this.#connectedAt = isConnected ? (this.#connectedAt ?? networkTime.now()) : undefined;
      if (networkTime.now() - (this.#connectedAt ?? Infinity) > HANDSHAKE) {
        connection.disconnect(true);
      }
      return;
    }
    this.#connectedAt = undefined;
    this.#progress.look();
    if (this.#askedAt === undefined) {
      if (this.#isDue) this.ask();
    } else if (this.isSilent) {
      this.#beats.onSilence();
    }
  }

  get #isDue(): boolean {
    const { every, isWanted } = this.#beats;
    const since = networkTime.now() - this.#lastAskedAt;
    return since > every - EARLY || this.#progress.isAwaited || isWanted?.() === true;
  }

  #onReply(askedAt: number): void {
    if (this.#askedAt === askedAt) this.#askedAt = undefined;
  }
}

/** Milliseconds between two looks. */
const LOOK = 1000;

/** Milliseconds by which a look may come before a question is due: timers are not exact. */
const EARLY = 100;

/** Milliseconds that a connection may take from connecting until it is ready. */
const HANDSHAKE = 3000;
