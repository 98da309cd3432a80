import { packAddress, packMember } from "../../src/queue/message/message.ts";

/** A source of random values that repeats itself for the same seed (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0 up to, but excluding, `end`. */
  below(end: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % end;
  }

  /** True once in so many times. */
  once(times: number): boolean {
    return this.below(times) === 0;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)));
  }

  /** Up to `most` values. */
  some<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.below(most + 1) }, make);
  }
}

/** Scores: due ones, later ones, and some that no deadline can be. */
const SCORES = ["-inf", "-1e300", "-1", "0", "0.5", "1000", "9e15", "1e19", "1e300", "+inf"];

/** Lengths at which layouts begin and end. */
const LENGTHS = [0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 26, 32, 33, 34, 40];

/** Bytes that scripts may find under the keys of a queue. Some are random, most are nearly right. */
export class Garbage {
  readonly #random: Random;
  readonly #keys: readonly string[];
  /** A deadline that many messages share. */
  readonly #deadline: number;
  /** Everything made so far. An entry or an element may refer to it. */
  readonly #members: { member: Buffer; deadline: number }[] = [];

  constructor(random: Random, keys: readonly string[], deadline: number) {
    this.#random = random;
    this.#keys = keys;
    this.#deadline = deadline;
  }

  /** A member of the ZSET, and its score. */
  member(): { member: Buffer; score: string } {
    const random = this.#random;
    const score = random.once(2) ? String(this.#deadline) : random.pick(SCORES);
    const member = random.once(4) ? this.#anything() : this.#spoiled(this.#wellFormed());
    this.#members.push({ member, deadline: Number(score.replace("inf", "Infinity")) });
    return { member, score };
  }

  /** An element of the insertion order. */
  element(): Buffer {
    const random = this.#random;
    const known = random.pick(this.#members);
    if (known === undefined || random.once(3)) return this.#anything();
    return this.#spoiled(random.once(2) ? known.member : this.#addressOf(known));
  }

  /** An entry of the index of business keys. */
  entry(): Buffer {
    const random = this.#random;
    const known = random.pick(this.#members);
    if (known === undefined || random.once(3)) return this.#anything();
    const tail = random.bytes(random.pick([0, 1, 2, 8, 9, 10]));
    return this.#spoiled(Buffer.concat([this.#addressOf(known), tail]));
  }

  /** Any bytes, with the lengths and first bytes that make a difference. */
  #anything(): Buffer {
    const bytes = this.#random.bytes(this.#random.pick(LENGTHS));
    const [first, ninth] = [
      this.#random.pick([undefined, 0, 16]),
      this.#random.pick([undefined, 0]),
    ];
    return bytes.map(
      (byte, i) => (i === 0 ? first : i === 8 ? ninth : undefined) ?? byte,
    ) as Buffer;
  }

  #wellFormed(): Buffer {
    const random = this.#random;
    const id = random.bytes(random.pick([16, 16, 16, 8, 0, 7, 255]));
    if (id.length === 16 && random.once(2)) id.fill(0, 0, 1);
    const key = random.pick(["", ...this.#keys]);
    const payload = random.bytes(random.pick([0, 1, 8, 30]));
    const more = random.pick([
      undefined,
      { headers: { trace: "1", "": "" } },
      { attempts: 3, headers: { trace: "é" } },
    ]);
    const member = packMember(id, payload, key, more);
    // An unknown field, behind the known ones.
    const isNewer = more !== undefined && random.once(3);
    return isNewer ? Buffer.concat([member, Buffer.from([99, 2, 0, 0, 0, 1, 2])]) : member;
  }

  #addressOf({ member, deadline }: { member: Buffer; deadline: number }): Buffer {
    return packAddress(deadline, member.subarray(1, 17));
  }

  /** Mostly the same bytes; or cut short, or longer, or with one byte changed. */
  #spoiled(bytes: Buffer): Buffer {
    const random = this.#random;
    switch (random.below(6)) {
      case 0:
        return bytes.subarray(0, random.below(bytes.length + 1));
      case 1:
        return Buffer.concat([bytes, random.bytes(1 + random.below(9))]);
      case 2: {
        const changed = Buffer.from(bytes);
        if (bytes.length > 0) changed[random.below(Math.min(bytes.length, 34))] = random.below(256);
        return changed;
      }
      default:
        return bytes;
    }
  }
}
