import type { Redis } from "ioredis";
import { Progress } from "./progress.ts";

/** Reads one reply from the bytes of a connection. */
export interface ReplyReader {
  /** Whether the whole reply was read. */
  readonly isDone: boolean;
  /**
   * Reads the part of the reply that begins at `at`; returns where it ends. If bytes are missing, returns how many at
   * least as a negative number, and reads the same part again when they are there. Returns undefined if it cannot read
   * this reply.
   */
  read(bytes: Buffer, at: number): number | undefined;
}

/**
 * Lets a {@link ReplyReader} read the reply to a command in place of ioredis, whose decoder takes about as long for an
 * entry of a stream as a consumer takes for everything else.
 *
 * It stands between the socket and ioredis, and passes on what comes. Of a reply that a reader has read, ioredis gets a null
 * instead. What a reader cannot read, from an error to a form that a later Redis may have, ioredis gets from its first byte
 * on.
 *
 * Only for a connection of our own, which sends one command after another: so the next reply is that to the next command.
 */
export class Bypass {
  readonly #redis: Redis;
  readonly #decode: (bytes: Buffer) => void;
  #reader: ReplyReader | undefined;
  /** The reply that is being read, from its first byte on. */
  #reply: Buffer[] = [];
  /** What the reader has not read yet. */
  #unread: Buffer[] = [];
  /** How many bytes have to come before it can read on. */
  #missing = 0;

  private constructor(redis: Redis, decode: (bytes: Buffer) => void) {
    this.#redis = redis;
    this.#decode = decode;
  }

  /** Stands in front of a connection's socket; returns undefined if it is not known how this ioredis reads from it. */
  static before(redis: Redis): Bypass | undefined {
    const { stream } = redis;
    const [decode, ...others] = stream.listeners("data");
    if (decode === undefined || others.length > 0) return undefined;
    const bypass = new Bypass(redis, (bytes) => void Reflect.apply(decode, stream, [bytes]));
    stream.removeListener("data", decode as (bytes: Buffer) => void);
    stream.prependListener("data", bypass.#receive);
    return bypass;
  }

  /** The reply to the command that is sent next is for `reader`, unless ioredis awaits another one. */
  open(reader: ReplyReader): void {
    this.#reader = Progress.of(this.#redis).isAwaited ? undefined : reader;
    this.#reply = [];
    this.#unread = [];
    this.#missing = 0;
  }

  readonly #receive = (chunk: Buffer): void => {
    const reader = this.#reader;
    if (reader === undefined) {
      this.#decode(chunk);
      return;
    }
    this.#reply.push(chunk);
    this.#unread.push(chunk);
    this.#missing -= chunk.length;
    // A large part is put together once, when all of it is there.
    if (this.#missing <= 0) this.#read(reader);
  };

  #read(reader: ReplyReader): void {
    const bytes = this.#unread.length === 1 ? this.#unread[0]! : Buffer.concat(this.#unread);
    let at = 0;
    while (!reader.isDone) {
      const end = reader.read(bytes, at);
      if (end === undefined) {
        this.#close(...this.#reply);
        return;
      }
      if (end < 0) {
        this.#unread = [bytes.subarray(at)];
        this.#missing = -end;
        return;
      }
      at = end;
    }
    this.#close(NULL, bytes.subarray(at));
  }

  /** Passes everything to ioredis again, and first of all these bytes. */
  #close(...bytes: readonly Buffer[]): void {
    this.#reader = undefined;
    this.#reply = [];
    this.#unread = [];
    for (const each of bytes) if (each.length > 0) this.#decode(each);
  }
}

/** A reply that every version of the protocol and of ioredis reads as null. */
const NULL = Buffer.from("*-1\r\n");
