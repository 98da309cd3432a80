import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { MessageId, ReliableQueue } from "../../../src/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";

/*
 * Producers offer, cancel, look up and reschedule by key, while consumers fail and the messages retry. The ledger knows
 * when a message certainly waits: from the reply to its offer or its `nack`, until the delay has passed that began, at
 * the earliest, when the call was made. If it is the only message of its key by then, each call has to reach it.
 */

const KEYS = 30;

/** A message in the ledger. */
interface Noted {
  readonly number: number;
  readonly key: string;
  id: MessageId | undefined;
  /** When it certainly waits (`performance.now()`). */
  waits: { readonly from: number; readonly until: number };
  takenAt: number;
  /** When it was last rescheduled or promoted. */
  changedAt: number;
  /** Whether another message of its key was there when it became retrying, and so may have the key. */
  mayBeKeyless: boolean;
  /** Whether a consumer held it while the number of partitions changed: it may retry in another partition. */
  isDisplaced: boolean;
  end: "handled" | "cancelled" | "replaced" | undefined;
}

const NEVER = { from: Infinity, until: -Infinity };

class KeyStorm {
  readonly faults: string[] = [];
  /** How often each call was made, and how often it was sure what it had to reach. */
  readonly done: Record<string, number> = {};
  isOver = false;
  /** When the number of partitions began to change last, and when that ended. */
  change = { from: -Infinity, until: -Infinity };
  readonly #notes = new Map<number, Noted>();
  readonly #live = new Map<string, Set<Noted>>();
  readonly #offered = new Map<string, number>();
  readonly #busy = new Set<string>();
  #last = 0;

  /** One producer. Producers share the keys, but only one at a time makes a call by a key. */
  async produce(queue: ReliableQueue<number>): Promise<void> {
    while (!this.isOver) {
      const key = `order:${Math.floor(Math.random() * KEYS)}`;
      if (this.#busy.has(key)) {
        await sleep(1);
        continue;
      }
      this.#busy.add(key);
      await this.#call(queue, key);
      this.#busy.delete(key);
      if (Math.random() < 0.3) await sleep(Math.random() * 5);
    }
  }

  async #call(queue: ReliableQueue<number>, key: string): Promise<void> {
    const live = [...this.#liveOf(key)];
    const only = live.length === 1 ? live[0] : undefined;
    const before = only?.waits ?? NEVER;
    const calledAt = performance.now();
    let what = pick(CALLS);
    // Several messages of a key, of which at most one holds it: the ledger would not know which one it replaces.
    if (live.length > 1 && (what === "replace" || what === "update")) what = "get";
    const check = (isReached: boolean, reply: unknown) => {
      this.#count(what);
      const isSure = before.from <= calledAt && before.until >= performance.now();
      if (only === undefined || only.mayBeKeyless || !isSure) return;
      if (only.isDisplaced && (what === "offer" || what === "replace" || what === "update")) return;
      this.#count(`sure ${what}`);
      if (isReached) return;
      this.faults.push(`${what} of ${key} misses ${only.number}: ${JSON.stringify(reply)}`);
    };
    switch (what) {
      case "offer":
      case "replace":
      case "update": {
        const delay = Math.random() < 0.5 ? 0 : Math.random() * 60;
        const added = this.#note(key);
        const onDuplicate = what === "offer" ? "ignore" : what;
        const offered = await queue.offer(added.number, delay, { key, onDuplicate });
        const { outcome } = offered;
        check(outcome === "existing" ? offered.id === only?.id : outcome !== "added", offered);
        if (outcome === "existing") {
          this.#notes.delete(added.number);
          this.#liveOf(key).delete(added);
          return;
        }
        added.id = offered.id;
        if (outcome !== "added" && only !== undefined) this.#finish(only, "replaced");
        if (outcome !== "updated" && added.takenAt === 0) {
          added.waits = { from: performance.now(), until: calledAt + delay };
        }
        return;
      }
      case "cancel": {
        const one = only ?? pick(live);
        if (one?.id === undefined) return;
        const isCancelled = await queue.cancel(one === only ? key : one.id);
        check(isCancelled, isCancelled);
        if (isCancelled) this.#finish(one, "cancelled");
        return;
      }
      case "get": {
        const found = await queue.get(key);
        check(found !== undefined && found.id === only?.id, found);
        return;
      }
      case "has": {
        const found = await queue.has(key);
        check(found, found);
        return;
      }
      default: {
        const delay = what === "promote" ? 0 : 30 + Math.random() * 100;
        const calling = what === "promote" ? queue.promote(key) : queue.reschedule(key, delay);
        const found = await calling;
        check(found !== undefined, found);
        for (const one of live) {
          // A delayed message has a new id, of which the end is the same.
          if (found === undefined || endOf(one.id) !== endOf(found.id)) continue;
          one.id = found.id;
          one.changedAt = performance.now();
          // It may have been rescheduled before it was taken last, or after.
          const isKnown = what !== "promote" && one.takenAt < calledAt;
          one.waits = isKnown ? { from: one.changedAt, until: calledAt + delay } : NEVER;
        }
      }
    }
  }

  /** One consumer, until nothing is left. */
  async consume(queue: ReliableQueue<number>): Promise<void> {
    while ((!this.isOver || this.live.length > 0) && this.faults.length === 0) {
      const delivery = await queue.poll(100);
      if (delivery === undefined) continue;
      const note = this.#notes.get(delivery.payload);
      if (note === undefined || note.end !== undefined) {
        this.faults.push(`${delivery.payload} was ${note?.end ?? "rejected"}, and is delivered`);
        await delivery.ack();
        continue;
      }
      note.takenAt = performance.now();
      note.waits = NEVER;
      if (Math.random() < 0.5) await sleep(Math.random() * 10);
      if (this.isOver || Math.random() < 0.25) {
        if (!(await delivery.ack())) this.faults.push(`${note.number} was not in flight`);
        this.#finish(note, "handled");
        continue;
      }
      const calledAt = performance.now();
      const delay = 40 + Math.random() * 150;
      const [others, last] = [this.#liveOf(note.key).size - 1, this.#last];
      if (!(await delivery.nack({ delay }))) this.faults.push(`${note.number} was not in flight`);
      const now = performance.now();
      note.mayBeKeyless = others > 0 || this.#lastOf(note.key) > last;
      note.isDisplaced ||= this.change.from <= now && this.change.until >= note.takenAt;
      // It may have been promoted meanwhile, and taken again.
      const isSame = note.takenAt <= calledAt && note.changedAt < calledAt;
      if (isSame) note.waits = { from: now, until: calledAt + delay };
    }
  }

  /** The messages that have not ended. */
  get live(): Noted[] {
    return [...this.#live.values()].flatMap((all) => [...all]);
  }

  /** The number of the message that was offered last with this key, even if it was rejected. */
  #lastOf(key: string): number {
    return this.#offered.get(key) ?? 0;
  }

  #note(key: string): Noted {
    const number = ++this.#last;
    this.#offered.set(key, number);
    const ids = { number, key, id: undefined, end: undefined, changedAt: 0 };
    const noted: Noted = {
      ...ids,
      waits: NEVER,
      takenAt: 0,
      mayBeKeyless: false,
      isDisplaced: false,
    };
    this.#notes.set(number, noted);
    this.#liveOf(key).add(noted);
    return noted;
  }

  #finish(note: Noted, end: NonNullable<Noted["end"]>): void {
    if (note.end !== undefined) this.faults.push(`${note.number} was ${note.end}, and is ${end}`);
    note.end = end;
    note.waits = NEVER;
    this.#liveOf(note.key).delete(note);
    this.#count(end);
  }

  #liveOf(key: string): Set<Noted> {
    const known = this.#live.get(key) ?? new Set<Noted>();
    this.#live.set(key, known);
    return known;
  }

  #count(what: string): void {
    this.done[what] = (this.done[what] ?? 0) + 1;
  }
}

const CALLS = [
  "offer",
  "offer",
  "replace",
  "update",
  "cancel",
  "get",
  "has",
  "reschedule",
  "promote",
];

function pick<Item>(items: readonly Item[]): Item {
  return items[Math.floor(Math.random() * items.length)] as Item;
}

function endOf(id: string | undefined): string | undefined {
  return id?.slice(id.lastIndexOf("-"));
}

const SECONDS = 15;

test.each([
  { what: "an ordinary queue", options: {}, counts: [] },
  { what: "partitions", options: { partitions: 3 }, counts: [] },
  { what: "partitions whose number changes", options: { partitions: 2 }, counts: [5, 3, 8, 2] },
])(
  "$what: calls by key reach every message that waits, and nothing is lost or comes back",
  async ({ options, counts }) => {
    const name = uniqueName("key-storm");
    const storm = new KeyStorm();
    const open = () => {
      const line = newLine();
      const settings = { ...options, maxAttempts: 1_000_000 };
      return { line, queue: line.getReliableQueue<number>(name, settings) };
    };
    const [producers, consumers] = [
      [open(), open()],
      [open(), open()],
    ];
    const producing = producers.flatMap(({ queue }) =>
      Array.from({ length: 8 }, () => storm.produce(queue)),
    );
    const consuming = consumers.flatMap(({ queue }) =>
      Array.from({ length: 12 }, () => storm.consume(queue)),
    );
    const endsAt = performance.now() + SECONDS * 1000;
    while (performance.now() < endsAt && storm.faults.length === 0) {
      await sleep(500);
      for (const count of counts) {
        storm.change = { from: performance.now(), until: Infinity };
        await producers[0]?.line.setPartitions(name, count);
        storm.change = { from: storm.change.from, until: performance.now() };
        await sleep(500);
      }
    }
    storm.isOver = true;
    await Promise.all(producing);
    await eventually(() => storm.live.length === 0 || storm.faults.length > 0, {
      within: 20_000,
    }).catch(() => storm.faults.push(`left: ${JSON.stringify(storm.live)}`));
    await Promise.all(consuming);
    expect(storm.faults).toEqual([]);
    expect(await producers[0]?.queue.size()).toBe(0);
    // Otherwise there was no storm.
    for (const call of CALLS) expect(storm.done[`sure ${call}`], call).toBeGreaterThan(20);
    for (const end of ["handled", "cancelled", "replaced"]) {
      expect(storm.done[end], end).toBeGreaterThan(20);
    }
    if (process.env["STORM"]) console.log(storm.done);
  },
  (SECONDS + 60) * 1000,
);
