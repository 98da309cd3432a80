import { expect, test } from "vitest";
import type { Batch } from "../../../src/lua/fragments/journal.ts";
import { FIRST_PAGE, pullOut, pullOutPage } from "../../../src/lua/partitions/pull-out.ts";
import { run } from "../../../src/lua/script.ts";
import { unpackMember } from "../../../src/queue/message/message.ts";
import { Garbage, Random } from "../../fault/garbage.ts";
import {
  bytes,
  indexEntry,
  message,
  newMoves,
  packRetry,
  retryName,
  type Bytes,
  type Message,
  type Moves,
} from "../../helpers/moves.ts";
import { drop, push } from "../../helpers/partitions.ts";

/*
 * Processes move messages, keys and retries from partition 0 to 1 and 2, together with garbage. Each step of each
 * process is a script, and the steps come in any order. Some steps happen twice, some processes die between two, and
 * some come back after a long while with an old batch. At the end each message is in its own partition, once, and its
 * key points to it.
 *
 * FUZZ_CASES=10000 for a long run; FUZZ_SEED=... FUZZ_CASES=1 to repeat one case.
 */

const CASES = Math.ceil(Number(process.env["FUZZ_CASES"] ?? 1000) / 50);
const SEED = Number(process.env["FUZZ_SEED"] ?? Date.now() % 1_000_000_000);
const FAR = 5_000_000_000_000;
const LETTERS = "abcdefghijklmnopqrstuvwxyz".split("");

class Case {
  readonly #random: Random;
  readonly #partitions: readonly Moves[];
  readonly #buckets: Buffer;
  readonly #messages: readonly Message[];
  readonly #retries: readonly Message[];
  /** Every batch that a process has held. */
  readonly #batches: Batch[] = [];
  /** The numbers of dropped batches. */
  readonly #done = new Set<number>();
  #cursor: Buffer = FIRST_PAGE;

  constructor(seed: number, partitions: readonly Moves[]) {
    this.#random = new Random(seed);
    this.#partitions = partitions;
    this.#buckets = this.#random.bytes(1024).map((byte) => byte % 3) as Buffer;
    const made = LETTERS.map((letter) => {
      const deadline = FAR + this.#random.below(3);
      return message(letter, deadline, this.#random.once(2) ? `key ${letter}` : "");
    });
    this.#messages = made.slice(0, 18);
    this.#retries = made.slice(18);
  }

  get #source(): Moves {
    return this.#partitions[0] as Moves;
  }

  async run(): Promise<void> {
    const garbage = await this.#fill();
    let processes = Array.from({ length: 3 }, () => this.#bring());
    for (let step = 0; step < 60; step++) {
      const one = this.#random.pick(processes);
      const isDead = this.#random.once(8);
      if (isDead || (await one.next()).done === true) {
        processes = [...processes.filter((other) => other !== one), this.#bring()];
      }
    }
    this.#cursor = FIRST_PAGE;
    for (let rounds = 0; this.#cursor !== undefined; rounds++) {
      expect(rounds).toBeLessThan(100);
      for await (const _ of this.#bring("page"));
      if (this.#cursor === FIRST_PAGE) break;
    }
    await this.#check(garbage);
  }

  /** Puts everything into partition 0. Returns the garbage among it. */
  async #fill(): Promise<Map<Bytes, number>> {
    const messages = this.#messages;
    const garbage = new Garbage(this.#random, ["k0", "k1"], FAR);
    const members = new Map(
      this.#random
        .some(8, () => garbage.member())
        .map(({ member, score }) => [member.toString("latin1"), score] as const),
    );
    const { redis, keys } = this.#source;
    for (const [member, score] of members) await redis.zadd(keys.timeouts, score, bytes(member));
    for (const key of ["k0", "k1"]) await redis.hset(keys.businessKeys, key, garbage.entry());
    const keyed = messages.filter(({ key }) => key !== "");
    await this.#source.seed({
      groups: ["g"],
      timeouts: messages.map(({ delayed }) => delayed),
      businessKeys: Object.fromEntries(keyed.map((one) => [one.key, indexEntry(one, 2, 7)])),
      retries: this.#retries.map((one) => [retryName(one, "g"), one.deadline]),
      retrying: Object.fromEntries(
        this.#retries.map((one) => [retryName(one, "g"), packRetry(one, 1)]),
      ),
    });
    // A snapshot has NaN for infinite scores, too.
    return new Map([...members].map(([member, score]) => [member, Number(score)]));
  }

  /** The steps of one process, which may be stopped at each yield. */
  async *#bring(how = this.#random.pick(["key", "id", "page"])): AsyncGenerator<undefined> {
    const batch = await this.#pull(how);
    this.#batches.push(batch);
    yield;
    if (batch.number === 0) return;
    const targets = this.#random.once(2) ? [1, 2, 0] : [0, 2, 1];
    for (const to of targets) {
      for (let times = this.#random.once(4) ? 2 : 1; times > 0; times--) {
        await push(this.#partitions[to] as Moves, batch, to);
        yield;
      }
    }
    for (let times = this.#random.once(4) ? 2 : 1; times > 0; times--) {
      await drop(this.#source, batch);
      this.#done.add(batch.number);
      yield;
    }
    // A process wakes up with an old batch.
    const old = this.#random.pick(this.#batches);
    const to = 1 + this.#random.below(2);
    const isNew = old.number > 0 && (await push(this.#partitions[to] as Moves, old, to));
    expect(isNew && this.#done.has(old.number), "comes once more").toBe(false);
  }

  async #pull(how: string): Promise<Batch> {
    const { redis, keys } = this.#source;
    const args = { own: 0, buckets: this.#buckets };
    const some = this.#random.some(3, () =>
      this.#random.pick([...this.#messages, ...this.#retries]),
    );
    if (how === "key") {
      const rows = some.map(({ key }) => ({ id: "", key, member: "" }));
      return await run(redis, pullOut, keys, args, rows);
    }
    if (how === "id") {
      const rows = some.map(({ address }) => ({ id: bytes(address), key: "", member: "" }));
      return await run(redis, pullOut, keys, args, rows);
    }
    const page = { cursor: this.#cursor, limit: 1 + this.#random.below(6), maxBytes: 1000 };
    const pulled = await run(redis, pullOutPage, keys, { ...args, ...page });
    this.#cursor = pulled.next ?? FIRST_PAGE;
    return pulled;
  }

  async #check(garbage: ReadonlyMap<Bytes, number>): Promise<void> {
    const wanted = { delayed: new Map<string, number>(), retries: new Map<string, number>() };
    const all = [...this.#messages.map(({ delayed }) => delayed), ...garbage];
    for (const [member, score] of all) wanted.delayed.set(this.#place(member), score);
    for (const one of this.#retries) {
      wanted.retries.set(`${this.#to(bytes(one.id))} ${retryName(one, "g")}`, one.deadline);
    }
    const found = { delayed: new Map<string, number>(), retries: new Map<string, number>() };
    for (const [i, partition] of this.#partitions.entries()) {
      const { timeouts = [], unreadable = [], retries = [], ...rest } = await partition.snapshot();
      for (const [member, score] of timeouts) found.delayed.set(`${i} ${member}`, score);
      for (const member of unreadable) {
        expect(unpackMember(bytes(member))).toBeUndefined();
        expect(found.delayed.has(`${i} ${member}`), "twice").toBe(false);
        found.delayed.set(`${i} ${member}`, garbage.get(member) ?? 0);
      }
      for (const [name, due] of retries) found.retries.set(`${i} ${name}`, due);
      expect(Object.keys(rest.retrying ?? {})).toHaveLength(retries.length);
      expect(rest.journal?.["rows"]).toBeUndefined();
      for (const one of this.#messages) {
        const isHere = one.key !== "" && this.#to(bytes(one.id)) === i;
        const entry = rest.businessKeys?.[one.key];
        expect(entry).toBe(isHere ? indexEntry(one, 2, 7) : undefined);
        if (isHere && i > 0) expect(rest.order).toContain(one.address);
      }
    }
    expect(found).toEqual(wanted);
  }

  #place(member: Bytes): string {
    return `${this.#to(unpackMember(bytes(member))?.id ?? bytes(member))} ${member}`;
  }

  #to(id: Buffer): number | undefined {
    return this.#buckets[((id.at(-2) ?? 0) % 4) * 256 + (id.at(-1) ?? 0)];
  }
}

test(`${CASES} cases, seed ${SEED}`, { timeout: 10_000 + CASES * 500 }, async () => {
  for (let i = 0; i < CASES; i++) {
    const partitions = await Promise.all([newMoves(), newMoves(), newMoves()]);
    try {
      await new Case(SEED + i, partitions).run();
    } catch (error) {
      throw new Error(`FUZZ_SEED=${SEED + i} FUZZ_CASES=1`, { cause: error });
    }
    for (const { redis, keys } of partitions) await redis.unlink(...Object.values(keys));
  }
});
