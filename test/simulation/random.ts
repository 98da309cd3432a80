/**
 * Random numbers that depend on a seed alone (sfc32). Each purpose has a stream of its own, so that drawing more for one
 * does not change the others.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, purpose: string) {
    this.#a = hash(purpose);
    this.#b = seed >>> 0;
    this.#c = Math.floor(seed / 2 ** 32) ^ 0x9e3779b9;
    for (let i = 0; i < 12; i++) this.uint32();
  }

  /** A whole number from 0 to 2^32 - 1. */
  uint32(): number {
    const t = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (this.#c << 21) | (this.#c >>> 11);
    this.#c = (this.#c + t) | 0;
    return t >>> 0;
  }

  /** A number from 0 to 1, without 1. */
  next(): number {
    return this.uint32() / 2 ** 32;
  }

  /** A whole number from 0 to `below`, without `below`. */
  int(below: number): number {
    return Math.floor(this.next() * below);
  }

  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number {
    return least + this.int(most - least + 1);
  }

  /** From `least` to `most`; each order of magnitude is equally likely. `least` must be above 0. */
  magnitude(least: number, most: number): number {
    return least * (most / least) ** this.next();
  }

  /** `true` with this probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** @throws {RangeError} if there is nothing to pick. */
  pick<Item>(items: readonly Item[]): Item {
    if (items.length === 0) throw new RangeError("nothing to pick from");
    return items[this.int(items.length)] as Item;
  }

  /** Picks one of the names; each is as likely as its weight says. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries<number>(weights) as [Name, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) if ((left -= weight) < 0) return name;
    throw new RangeError("no weight is above 0");
  }

  /** Returns the items in random order. */
  shuffled<Item>(items: readonly Item[]): Item[] {
    const left = [...items];
    return items.map(() => left.splice(this.int(left.length), 1)[0] as Item);
  }

  fill(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) bytes[i] = this.uint32() >>> 24;
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  }
  return value;
}
