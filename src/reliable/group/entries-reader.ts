import { bareEntry, unpackEntry, type Entry } from "../../lua/places/stream.ts";
import type { ReplyReader } from "../../redis/bypass.ts";

/** An entry that was read; one in a foreign format as its fields and values. */
export type ReadEntry = Entry | { readonly entryId: string; readonly fields: readonly Buffer[] };

/** Returns the entry with these fields, as it was read. */
export function readEntry(entryId: string, fields: readonly Buffer[]): ReadEntry {
  return unpackEntry(entryId, fields) ?? { entryId, fields };
}

/**
 * Reads the entries in a reply to XREADGROUP that names one stream. In RESP2 the reply is a list with the stream's name
 * and its entries, in RESP3 a map; other replies it leaves alone. It reads one entry after another, and makes nothing of the
 * bytes but what a delivery needs.
 */
export class EntriesReader implements ReplyReader {
  readonly entries: ReadEntry[] = [];
  /** How many entries are still to come. Undefined before the first. */
  #left: number | undefined;
  #bytes: Buffer = NOTHING;
  #at = 0;
  /** The number in the header that was read last, such as 24 of `$24\r\n`. */
  #count = 0;
  /** Where the fields and values of an entry begin and end, and behind them those of a longer one before. */
  readonly #ends: number[] = [];
  /** Why reading has stopped: see {@link ReplyReader.read}. */
  #stop: number | undefined;

  get isDone(): boolean {
    return this.#left === 0;
  }

  read(bytes: Buffer, at: number): number | undefined {
    this.#bytes = bytes;
    this.#at = at;
    const isRead = this.#left === undefined ? this.#readHead() : this.#readEntry();
    this.#bytes = NOTHING;
    return isRead ? this.#at : this.#stop;
  }

  #readHead(): boolean {
    const isMap = this.#bytes[this.#at] === MAP;
    if (!this.#header(isMap ? MAP : LIST, 1)) return false;
    if (!isMap && !this.#header(LIST, 2)) return false;
    if (!this.#string() || !this.#header(LIST)) return false;
    if (this.#count === 0) return this.#refuse();
    this.#left = this.#count;
    return true;
  }

  #readEntry(): boolean {
    if (!this.#header(LIST, 2) || !this.#string()) return false;
    const idEnd = this.#at - END;
    const idAt = idEnd - this.#count;
    if (!this.#header(LIST)) return false;
    const count = this.#count;
    const ends = this.#ends;
    for (let i = 0; i < count; i++) {
      if (!this.#string()) return false;
      const end = this.#at - END;
      ends[2 * i] = end - this.#count;
      ends[2 * i + 1] = end;
    }
    const entryId = this.#bytes.toString("latin1", idAt, idEnd);
    this.entries.push(this.#bareEntry(entryId, count) ?? readEntry(entryId, this.#fields(count)));
    this.#left!--;
    return true;
  }

  /** The entry, if it has an address and a payload alone, as most have. */
  #bareEntry(entryId: string, count: number): Entry | undefined {
    if (count !== 4 || !this.#isField(0, "a") || !this.#isField(2, "p")) return undefined;
    return bareEntry(entryId, this.#value(1), this.#value(3));
  }

  #isField(i: number, name: string): boolean {
    const at = this.#ends[2 * i]!;
    return this.#ends[2 * i + 1] === at + 1 && this.#bytes[at] === name.charCodeAt(0);
  }

  #value(i: number): Buffer {
    return this.#bytes.subarray(this.#ends[2 * i], this.#ends[2 * i + 1]);
  }

  #fields(length: number): Buffer[] {
    return Array.from({ length }, (_, i) => this.#value(i));
  }

  /** Reads a string with its header. */
  #string(): boolean {
    if (!this.#header(STRING)) return false;
    this.#at += this.#count + END;
    return this.#at <= this.#bytes.length || this.#miss(this.#at);
  }

  /** Reads a header: its type, a number, which may be known, and the end of the line. */
  #header(type: number, count?: number): boolean {
    const bytes = this.#bytes;
    let at = this.#at;
    if (at === bytes.length) return this.#miss(at + 1);
    if (bytes[at] !== type) return this.#refuse();
    let number = 0;
    for (;;) {
      if (++at === bytes.length) return this.#miss(at + END);
      const byte = bytes[at]!;
      if (byte === RETURN) break;
      if (byte < ZERO || byte > NINE) return this.#refuse();
      number = number * 10 + byte - ZERO;
    }
    this.#at = at + END;
    if (this.#at > bytes.length) return this.#miss(this.#at);
    if (count !== undefined && number !== count) return this.#refuse();
    this.#count = number;
    return true;
  }

  /** Bytes are missing, up to `end` at least. */
  #miss(end: number): false {
    this.#stop = this.#bytes.length - end;
    return false;
  }

  /** This is no reply of the known form. */
  #refuse(): false {
    this.#stop = undefined;
    return false;
  }
}

const NOTHING = Buffer.alloc(0);

// The first byte of a header tells what follows.
const LIST = 42; // *
const MAP = 37; // %
const STRING = 36; // $

const RETURN = 13;
const ZERO = 48;
const NINE = 57;

/** Bytes at the end of a header and of a string. */
const END = 2;
