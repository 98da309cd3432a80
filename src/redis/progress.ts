import type { Redis } from "ioredis";
import { networkTime } from "../time/runtime.ts";

/**
 * How the bytes of a connection get on, in both directions.
 *
 * A connection whose reply is overdue may only be slow: a large reply takes its time, and so do the bytes written before the
 * question. So no caller takes a connection for dead, or gives a call up, before the connection **stands still**. Callers look at
 * it now and then, which costs no command. It moves while
 *
 * - bytes are read,
 * - bytes that the kernel had no room for are accepted. Room is made only by the other end, so a write that is accepted at
 *   once says nothing;
 * - a link of {@link SLOWEST} would still be busy with what was written and is not answered: the kernel and routers hold
 *   megabytes, and nothing shows how they drain.
 *
 * A reply that trickles for ever has to end, too: after a minute, it counts as standing still unless {@link TRICKLE} of it
 * has come.
 */
export class Progress {
  readonly #connection: Connection;
  /** The socket that was seen last: each has a progress of its own. */
  #stream: Stream | undefined;
  #read = 0;
  #accepted = 0;
  /** Bytes that waited for the kernel at the last look. */
  #queued = 0;
  /** Of all that was written, how much the replies have confirmed. */
  #answered = 0;
  /** The newest command of some look, and what was written by then: its reply confirms that. */
  #mark: { readonly item: unknown; readonly written: number } | undefined;
  /** When bytes were last seen to move (`networkTime.now()`). */
  #movedAt = -Infinity;
  /** How many have moved without a pause, and without an answer in between, and since when. */
  #spell = { since: -Infinity, bytes: 0 };
  #patience = 0;
  #lookedAt = -Infinity;

  private constructor(connection: Redis) {
    this.#connection = connection;
  }

  /** Returns the only instance for a connection. */
  static of(connection: Redis): Progress {
    let progress = known.get(connection);
    if (progress === undefined) known.set(connection, (progress = new Progress(connection)));
    return progress;
  }

  /** Whether a command waits for its reply; also if that is unknown. */
  get isAwaited(): boolean {
    return this.#connection.commandQueue?.length !== 0;
  }

  /** Looks, unless that was done a moment ago: a look takes longer where much waits to be written. */
  lookSometimes(): void {
    if (networkTime.now() - this.#lookedAt >= MOMENT) this.look();
  }

  /** Looks how far the bytes have come. What moved since the last look counts as moving now. */
  look(): void {
    const { stream } = this.#connection;
    const now = networkTime.now();
    const read = stream?.bytesRead ?? 0;
    const written = stream?.bytesWritten ?? 0;
    const unsent = stream?.writableLength ?? 0;
    const accepted = written - unsent;
    const isOther = stream !== this.#stream;
    if (isOther || !this.isAwaited) {
      this.#stream = stream;
      this.#answered = written;
      this.#mark = undefined;
      // A wait that begins after this look begins here.
      this.#movedAt = now;
      this.#spell = { since: now, bytes: 0 };
    } else {
      const drained = this.#queued > 0 ? accepted - this.#accepted : 0;
      this.#note(read - this.#read + drained, now);
      this.#noteAnswers(written);
    }
    this.#read = read;
    this.#accepted = accepted;
    // Of a corked socket they do not wait for the kernel.
    this.#queued = stream?.writableCorked ? 0 : unsent;
    this.#lookedAt = now;
    this.#patience = Math.min((written - this.#answered) / SLOWEST, MOST);
  }

  /**
   * Looks; returns whether the connection has stood still for this many milliseconds while something was awaited, and for
   * what the bytes under way may take besides.
   */
  hasStoodStill(duration: number): boolean {
    this.look();
    const now = networkTime.now();
    if (now - this.#movedAt >= duration + this.#patience) return true;
    const { since, bytes } = this.#spell;
    return now - since >= MOST + bytes / TRICKLE;
  }

  #note(bytes: number, now: number): void {
    if (bytes <= 0) return;
    if (now - this.#movedAt > SILENCE) this.#spell = { since: now, bytes: 0 };
    this.#spell.bytes += bytes;
    this.#movedAt = now;
  }

  /** Notes what has been answered: replies come in the order of the commands. */
  #noteAnswers(written: number): void {
    const { commandQueue } = this.#connection;
    if (commandQueue === undefined) return;
    if (this.#mark !== undefined) {
      for (let i = 0; i < commandQueue.length; i++) {
        if (commandQueue.peekAt(i) === this.#mark.item) return;
      }
      this.#answered = this.#mark.written;
      this.#spell = { since: networkTime.now(), bytes: 0 };
    }
    this.#mark = { item: commandQueue.peekAt(commandQueue.length - 1), written };
  }
}

const known = new WeakMap<Redis, Progress>();

/** What is seen of a client of ioredis. Its types hide the commands that wait for their replies; every version has them. */
interface Connection {
  /** Undefined before the first attempt to connect. */
  readonly stream: Stream | undefined;
  readonly commandQueue?: { readonly length: number; peekAt(index: number): unknown };
}

/** A socket. */
interface Stream {
  readonly bytesRead: number;
  /** Those that wait for the kernel included. */
  readonly bytesWritten: number;
  readonly writableLength: number;
  readonly writableCorked: number;
}

/** Milliseconds without a byte, in a wait. A little below 2 s, so the second look after the command finds it overdue. */
export const SILENCE = 1900;

/** Milliseconds. */
const MOMENT = 10;

/** Bytes per millisecond that a link has to carry, so that what a process writes is not taken for lost. */
const SLOWEST = 64;

/** Bytes per millisecond that a reply has to come at, after a minute. */
const TRICKLE = 1;

/** Milliseconds. */
const MOST = 60_000;
