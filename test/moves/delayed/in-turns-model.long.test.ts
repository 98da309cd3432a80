import { expect, test } from "vitest";
import type { OnlyIf } from "../../../src/index.ts";
import { get } from "../../../src/lua/delayed/get.ts";
import { offerKeyed } from "../../../src/lua/delayed/offer-keyed.ts";
import { offer } from "../../../src/lua/delayed/offer.ts";
import { clearDelayed, remove, sizeOfDelayed } from "../../../src/lua/delayed/remove.ts";
import { reschedule } from "../../../src/lua/delayed/reschedule.ts";
import {
  pacedSweep,
  pacedTransfer,
  type TransferReply,
} from "../../../src/lua/delayed/transfer.ts";
import { freeSlots, holdLane, setFlow } from "../../../src/lua/queue/flow.ts";
import { countWaiting } from "../../../src/lua/queue/stats.ts";
import { ack, giveBackEntries, retryLater } from "../../../src/lua/reliable/deliveries.ts";
import { reclaim } from "../../../src/lua/reliable/reclaim.ts";
import { clearRetries, sizeWithRetries } from "../../../src/lua/reliable/retries.ts";
import { run } from "../../../src/lua/script.ts";
import { packAddress, packMember } from "../../../src/queue/message/message.ts";
import { Random } from "../../fault/garbage.ts";
import { bytes, newMoves, retryName, type Moves } from "../../helpers/moves.ts";
import { upTo } from "../../helpers/numbers.ts";
import { scriptBy } from "../../helpers/script-at.ts";

/*
 * Random operations on one queue, whose flow has lanes and is changed now and then, by a clock that the test turns. Beside
 * it runs a plain model of what should be. Each verdict has to be the model's; what becomes ready has to obey the rates, the
 * order within the lanes, and the room that there is; and after the mover has come to rest, nothing waits that may go.
 *
 * FUZZ_CASES=1000 for a long run; FUZZ_SEED=... FUZZ_CASES=1 to repeat one case.
 */

const CASES = Math.ceil(Number(process.env["FUZZ_CASES"] ?? 1000) / 25);
const SEED = Number(process.env["FUZZ_SEED"] ?? 1);
const STEPS = 250;
const START = 2_000_000_000_000_000;
const GROUP = "g";

interface Held {
  readonly n: string;
  readonly id: Buffer;
  readonly deadline: number;
  readonly key: string;
  readonly lane: string;
  readonly priority: number;
  readonly onlyIf?: OnlyIf;
  readonly deliverWithin?: number;
  readonly member: Buffer;
}

interface Retrying {
  readonly message: Held;
  readonly due: number;
  readonly waits: boolean;
}

/** What may go at a rate, as scripts have it: microseconds for each message, messages at once. */
interface Pace {
  readonly step: number;
  readonly burst: number;
}

interface LanePace extends Pace {
  readonly cost: number;
  /** How many may be in hand; 0 for any number. */
  readonly slots: number;
}

interface Flow {
  readonly kind: "none" | "paced" | "lanes";
  readonly pace: Pace | undefined;
  readonly ahead: number;
  /** How many of the queue may be in hand; 0 for any number. */
  readonly most: number;
  readonly lane: LanePace;
  readonly own: ReadonlyMap<string, LanePace>;
}

const FREE: LanePace = { step: 0, burst: 0, cost: 1, slots: 0 };
const NO_FLOW: Flow = {
  kind: "none",
  pace: undefined,
  ahead: 1e15,
  most: 0,
  lane: FREE,
  own: new Map(),
};
/** When a mover looks again at a lane that has too much in hand, if nobody tells it that a slot is free (ms). */
const LOOK_AGAIN = 1000;

const addressOf = ({ deadline, id }: Held) => packAddress(deadline, id);

const wordsOf = ({ step, burst, cost, slots }: LanePace) => `${step} ${burst} ${cost} ${slots}`;

/** How many may go now, if the rate is used up until `arrival` (all in microseconds). */
function tokensAt(arrival: number, at: number, { step, burst }: Pace): number {
  return Math.max(0, Math.min(burst, Math.floor(burst - (arrival - at) / step + 1e-6)));
}

/** When as many may go as fall to 10 ms, or one (epoch ms). */
function nextOf(arrival: number, at: number, { step, burst }: Pace): number {
  const together = Math.max(1, Math.min(burst, Math.floor(10_000 / step)));
  return Math.ceil((Math.max(arrival, at) - (burst - together) * step) / 1000);
}

/** Of two messages of a lane, which one goes first. */
function compareTurns(a: Held, b: Held): number {
  return b.priority - a.priority || Buffer.compare(addressOf(a), addressOf(b));
}

class Case {
  readonly #random: Random;
  readonly #moves: Moves;
  readonly #isReliable: boolean;
  readonly #clock: string;
  readonly #swapped = new Map<unknown, unknown>();
  #now = START;
  #made = 0;
  readonly #story: string[] = [];

  readonly #delayed = new Map<string, Held>();
  readonly #waiting = new Map<string, Held>();
  readonly #retries = new Map<string, Retrying>();
  /** In the LIST; or in the stream, and not delivered yet. */
  #ready: Held[] = [];
  readonly #inFlight = new Map<string, { readonly message: Held; readonly consumer: string }>();
  readonly #isOwn = new Set<string>();
  /** The messages whose entries have a slot: of the queue (1), or of their lane (2). */
  readonly #slots = new Map<string, 1 | 2>();
  /** Those of them that count for their lane. */
  readonly #hands = new Set<string>();
  /** Until when lanes are held (ms). */
  readonly #holds = new Map<string, number>();
  #lastEntry = "0-0";
  /** By business key the message that holds it. */
  readonly #holders = new Map<string, string>();
  readonly #flags = new Map<string, boolean>();
  #flow: Flow = NO_FLOW;
  /** What the flow becomes when nobody waits any more. */
  #target: Flow | undefined;
  /** Up to when the rates are used up (epoch microseconds). */
  #arrival = 0;
  readonly #arrivals = new Map<string, number>();
  /** What became ready under the flow that holds, and when (ms). */
  #gone: { readonly lane: string; readonly at: number }[] = [];
  readonly #done: string[] = [];
  /** How many have gone in turns, and how often some had to wait. */
  readonly seen = { turns: 0, waits: 0 };

  constructor(seed: number, moves: Moves) {
    this.#random = new Random(seed * 7919);
    this.#moves = moves;
    this.#isReliable = seed % 2 === 0;
    this.#clock = `${moves.keys.ready}:clock`;
  }

  async run(): Promise<void> {
    const { redis, keys } = this.#moves;
    await redis.set(this.#clock, this.#now);
    if (this.#isReliable) await redis.xgroup("CREATE", keys.stream, GROUP, "$", "MKSTREAM");
    try {
      await this.#set(this.#aFlow("lanes"));
      for (let i = 0; i < STEPS; i++) {
        await this.#step();
        await this.#check(i % 10 === 0);
      }
      await this.#end();
    } catch (error) {
      throw new Error(
        `after ${this.#story.slice(-Number(process.env["FUZZ_STORY"] ?? 12)).join("; ")}`,
        { cause: error },
      );
    }
  }

  get #ms(): number {
    return Math.floor(this.#now / 1000);
  }

  #by<One extends object>(script: One): One {
    const known = this.#swapped.get(script) as One | undefined;
    if (known !== undefined) return known;
    const swapped = scriptBy(this.#clock, script as never) as unknown as One;
    this.#swapped.set(script, swapped);
    return swapped;
  }

  async #turnClock(micros: number): Promise<void> {
    this.#now += micros;
    await this.#moves.redis.set(this.#clock, this.#now);
  }

  async #step(): Promise<void> {
    const random = this.#random;
    await this.#turnClock(random.pick([0, 0, 1, 700, 4000, 4000, 30_000, 90_000, 400_000]));
    const more: (() => Promise<void>)[] = this.#isReliable
      ? [
          () => this.#read(),
          () => this.#read(),
          () => this.#settle(),
          () => this.#settle(),
          () => this.#die(),
        ]
      : [() => this.#take(), () => this.#take()];
    const steps: (() => Promise<void>)[] = [
      () => this.#offer(),
      () => this.#offer(),
      () => this.#offerKeyed(),
      () => this.#offerKeyed(),
      () => this.#cancel(),
      () => this.#cancel(),
      () => this.#reschedule(),
      () => this.#reschedule(),
      ...upTo(6).map(() => async () => void (await this.#move())),
      ...more,
      ...more,
    ];
    if (random.once(25)) await this.#set();
    else if (random.once(24)) await this.#hold();
    else if (random.once(60)) await this.#clear();
    else if (random.once(20)) await this.#turnFlag();
    else await random.pick(steps)();
  }

  /* What users do. */

  #message(key: string): Held {
    const random = this.#random;
    const n = `m${this.#made++}`;
    const id = Buffer.alloc(16);
    id.writeBigUInt64BE(BigInt(this.#now));
    id.writeUInt32BE(random.below(2 ** 32), 8);
    id.writeUInt32BE(this.#made, 12);
    const lane = random.pick(["", "a", "a", "a", "b", "b", "c", "d"]);
    const priority = random.once(3) ? random.pick([-100, -1, 1, 5, 100]) : 0;
    const deadline = this.#ms + random.pick([-50, 0, 0, 0, 1, 5, 5, 40, 200, 1500]);
    const terms = {
      ...(lane !== "" && { lane }),
      ...(priority !== 0 && { priority }),
      ...(random.once(8) && {
        onlyIf: { key: this.#flagKey(random.pick(["x", "y"])), exists: true },
      }),
      ...(random.once(12) && { deliverWithin: random.pick([10, 100, 1000]) }),
    };
    const member = packMember(id, Buffer.from(n), key, terms);
    return { n, id, deadline, key, member, lane, priority, ...terms };
  }

  async #offer(): Promise<void> {
    const { redis, keys } = this.#moves;
    const all = upTo(this.#random.pick([1, 1, 2, 9])).map(() => this.#message(""));
    this.#story.push(`offer ${all.map(nameOf).join(" ")}`);
    const rows = all.map(({ member, deadline }) => ({ member, delay: "", deadline }));
    const reply = await run(redis, this.#by(offer), keys, { channel: keys.channel }, rows);
    expect(reply.deadlines).toEqual(all.map(({ deadline }) => deadline));
    for (const one of all) this.#delayed.set(one.n, one);
  }

  async #offerKeyed(): Promise<void> {
    const { redis, keys } = this.#moves;
    const rule = this.#random.pick(["ignore", "replace", "update"]);
    const fresh = this.#message(this.#aKey());
    const held = this.#holderOf(fresh.key);
    this.#story.push(`offer ${nameOf(fresh)}, ${rule} ${held?.n ?? "nothing"}`);
    const { member, deadline, key } = fresh;
    const row = { member, delay: "", deadline, key, rule, maxWait: "" };
    const { results } = await run(redis, this.#by(offerKeyed), keys, { channel: keys.channel }, [
      row,
    ]);
    if (held !== undefined && rule === "ignore") {
      const holder = addressOf(held.message);
      expect(results).toEqual([{ deadline: held.due, outcome: "existing", holder }]);
      return;
    }
    const due = held !== undefined && rule === "update" ? held.due : deadline;
    const outcome = held === undefined ? "added" : rule === "update" ? "updated" : "replaced";
    expect(results).toEqual([{ deadline: due, outcome, holder: undefined }]);
    if (held !== undefined) this.#drop(held.n);
    this.#delayed.set(fresh.n, { ...fresh, deadline: due });
    this.#holders.set(key, fresh.n);
  }

  async #cancel(): Promise<void> {
    const { redis, keys } = this.#moves;
    const random = this.#random;
    const rows = upTo(random.pick([1, 1, 3])).map(() => this.#aName());
    this.#story.push(
      `cancel ${rows.map(({ found, n }) => found ?? `${n}, which is gone`).join(" ")}`,
    );
    const expected: boolean[] = [];
    for (const { found } of rows) expected.push(found !== undefined && this.#drop(found));
    const names = rows.map(({ id, key }) => ({ id, key }));
    expect(await run(redis, this.#by(remove), keys, {}, names)).toEqual(expected);
  }

  async #reschedule(): Promise<void> {
    const { redis, keys } = this.#moves;
    const random = this.#random;
    const { id, key, found, n } = this.#aName();
    const deadline = random.once(3) ? "" : this.#ms + random.pick([-20, 0, 3, 60, 900]);
    this.#story.push(`reschedule ${found ?? `${n}, which is gone`} for ${deadline}`);
    const args = { channel: keys.channel, id, key, delay: "", deadline };
    const reply = await run(redis, this.#by(reschedule), keys, args);
    const place = found === undefined ? undefined : this.#placeOf(found);
    if (found === undefined || place === undefined) {
      expect(reply).toBeUndefined();
      return;
    }
    const due = deadline === "" ? Math.min(place.due, this.#ms) : deadline;
    expect(reply).toMatchObject({ place: place.place, deadline: due });
    const retry = this.#retries.get(found);
    if (retry !== undefined) {
      if (deadline === "" && retry.waits) return;
      this.#retries.set(found, { ...retry, due, waits: false });
    } else if (due !== place.due) {
      this.#waiting.delete(found);
      this.#delayed.set(found, { ...place.message, deadline: due });
    }
  }

  async #clear(): Promise<void> {
    const { redis, keys } = this.#moves;
    const ofRetries = this.#isReliable && this.#random.once(2);
    this.#story.push(ofRetries ? "clear retries" : "clear");
    const gone = ofRetries
      ? [...this.#retries.keys()]
      : [...this.#delayed.keys(), ...this.#waiting.keys()];
    const cleared = ofRetries
      ? await run(redis, this.#by(clearRetries), keys, {})
      : await run(redis, this.#by(clearDelayed), keys, {});
    expect(cleared).toBe(gone.length);
    for (const n of gone) this.#drop(n);
  }

  async #turnFlag(): Promise<void> {
    const name = this.#random.pick(["x", "y"]);
    const isSet = this.#flags.get(name) === true;
    this.#story.push(`${isSet ? "delete" : "set"} ${name}`);
    const key = this.#flagKey(name);
    await (isSet ? this.#moves.redis.del(key) : this.#moves.redis.set(key, "1"));
    this.#flags.set(name, !isSet);
  }

  async #hold(): Promise<void> {
    const { redis, keys } = this.#moves;
    const name = this.#random.pick(["", "a", "b", "c"]);
    const duration = this.#random.pick([1, 20, 200, 2000]);
    this.#story.push(`hold ${name} for ${duration}`);
    const isHeld = await run(redis, this.#by(holdLane), keys, { name, duration });
    expect(isHeld).toBe(this.#flow.kind === "lanes" && this.#target === undefined);
    const until = Math.ceil(this.#now / 1000 + duration);
    if (isHeld) this.#holds.set(name, Math.max(until, this.#holds.get(name) ?? 0));
  }

  #flagKey(name: string): string {
    return `${this.#moves.keys.ready}:flag:${name}`;
  }

  #aKey(): string {
    return this.#random.pick(["k0", "k1", "k2", "k3"]);
  }

  /** A name of a message, and the message if it is delayed, waits or is retried. */
  #aName(): { id: Buffer | ""; key: string; n: string; found: string | undefined } {
    const random = this.#random;
    if (random.once(3)) {
      const key = this.#aKey();
      return { id: "", key, n: key, found: this.#holders.get(key) };
    }
    const due = [...this.#delayed, ...this.#waiting, ...this.#waiting].map(([, one]) => one);
    const retried = [...this.#retries.values()].map(({ message }) => message);
    const all = [...due, ...retried, ...retried, ...this.#ready.slice(0, 2)];
    if (all.length === 0)
      return {
        id: packAddress(this.#ms, Buffer.alloc(16, 7)),
        key: "",
        n: "nobody",
        found: undefined,
      };
    const one = random.pick(all);
    const isHere = this.#placeOf(one.n)?.message.deadline === one.deadline;
    return { id: addressOf(one), key: "", n: one.n, found: isHere ? one.n : undefined };
  }

  #placeOf(n: string): { place: string; due: number; message: Held } | undefined {
    const message = this.#delayed.get(n) ?? this.#waiting.get(n);
    if (message !== undefined) return { place: "delayed", due: message.deadline, message };
    const retry = this.#retries.get(n);
    return retry && { place: "retrying", due: retry.due, message: retry.message };
  }

  #holderOf(key: string) {
    const n = this.#holders.get(key);
    const found = n === undefined ? undefined : this.#placeOf(n);
    return n === undefined || found === undefined ? undefined : { n, ...found };
  }

  /** Takes a message out of the places in which it can be found; returns whether it was there. */
  #drop(n: string): boolean {
    const place = this.#placeOf(n);
    if (place === undefined) return false;
    this.#delayed.delete(n);
    this.#waiting.delete(n);
    this.#retries.delete(n);
    if (this.#holders.get(place.message.key) === n) this.#holders.delete(place.message.key);
    return true;
  }

  /* What consumers do. */

  async #take(): Promise<void> {
    const count = this.#random.pick([1, 1, 2, 5, 30]);
    const { redis, keys } = this.#moves;
    const taken = (await redis.lpop(keys.ready, count)) ?? [];
    this.#story.push(`take ${taken.join(" ")}`);
    expect(taken).toEqual(this.#ready.splice(0, count).map(({ n }) => n));
    this.#done.push(...taken);
  }

  async #read(): Promise<void> {
    const { redis, keys } = this.#moves;
    const consumer = this.#random.pick(["c", "dies"]);
    const count = this.#random.pick([1, 2, 5, 30]);
    const found = await redis.xreadgroup(
      ...(["GROUP", GROUP, consumer, "COUNT", count, "STREAMS", keys.stream, ">"] as const),
    );
    const [[, entries]] = (found ?? [["", []]]) as [[string, [id: string, fields: string[]][]]];
    this.#story.push(
      `${consumer} reads ${entries.map(([, fields]) => payloadIn(fields)).join(" ")}`,
    );
    const expected = this.#ready.splice(0, count);
    expect(entries.map(([, fields]) => payloadIn(fields))).toEqual(expected.map(({ n }) => n));
    for (const [i, [id, fields]] of entries.entries()) {
      this.#inFlight.set(id, { message: expected[i] as Held, consumer });
      if (fields.filter((_, k) => k % 2 === 0).includes("g")) this.#isOwn.add(id);
    }
  }

  async #settle(): Promise<void> {
    const { redis, keys } = this.#moves;
    const random = this.#random;
    const consumer = random.pick(["c", "dies"]);
    const mine = [...this.#inFlight].filter(([, one]) => one.consumer === consumer);
    const some = mine.filter(() => random.once(2)).slice(0, 6);
    const names = some.map(([, { message }]) => message.n);
    const group = { group: GROUP, consumer, heldCount: 100 };
    const row = (entry: string) => ({ entry, own: this.#isOwn.has(entry) ? 1 : 0 });
    const how = random.below(4);
    if (how < 2) {
      this.#story.push(`ack ${names.join(" ")}`);
      const rows = some.map(([entry]) => row(entry));
      expect(await run(redis, this.#by(ack), keys, group, rows)).toEqual(some.map(() => true));
      this.#done.push(...names);
    } else if (how === 2) {
      this.#story.push(`give back ${names.join(" ")}`);
      const rows = some.map(([entry]) => ({
        ...row(entry),
        counted: random.below(2),
        reason: "back",
      }));
      const args = { ...group, channel: keys.channel };
      const settled = await run(redis, this.#by(giveBackEntries), keys, args, rows);
      expect(settled).toEqual(some.map(() => true));
      await this.#expectReady(some.map(([, { message }]) => message));
    } else {
      const delay = random.pick([0, 5, 5, 100, 800]);
      this.#story.push(`retry ${names.join(" ")} in ${delay}`);
      const rows = some.map(([entry]) => ({
        ...row(entry),
        delay,
        counted: random.below(2),
        reason: "no",
      }));
      const args = { ...group, channel: keys.channel };
      const { settled } = await run(redis, this.#by(retryLater), keys, args, rows);
      expect(settled).toEqual(some.map(() => true));
      const due = delay === 0 ? this.#ms : Math.ceil(this.#now / 1000 + delay);
      for (const [, { message }] of some) {
        this.#retries.set(message.n, { message, due, waits: false });
        if (message.key !== "" && !this.#holders.has(message.key))
          this.#holders.set(message.key, message.n);
      }
    }
    for (const [entry] of some) this.#inFlight.delete(entry);
    if (how !== 2) await this.#free(some.map(([, { message }]) => message));
  }

  /** Messages have left their hands, and who settled them tells their lanes. */
  async #free(messages: readonly Held[]): Promise<void> {
    const { redis, keys } = this.#moves;
    const lanes = new Set<string>();
    for (const { n, lane } of messages) {
      if (this.#slots.has(n)) lanes.add(lane);
      this.#slots.delete(n);
      this.#hands.delete(n);
    }
    const rows = [...lanes].map((name) => ({ name }));
    if (rows.length > 0)
      await run(redis, this.#by(freeSlots), keys, { channel: keys.channel }, rows);
  }

  /** A consumer dies, and what it had is ready again. */
  async #die(): Promise<void> {
    const { redis, keys } = this.#moves;
    const had = [...this.#inFlight].filter(([, one]) => one.consumer === "dies").slice(0, 10);
    this.#story.push(`a consumer dies with ${had.map(([, { message }]) => message.n).join(" ")}`);
    const args = {
      channel: keys.channel,
      group: GROUP,
      consumer: "dies",
      idle: 0,
      maxAttempts: Infinity,
      limit: 10,
    };
    expect(await run(redis, this.#by(reclaim), keys, args)).toMatchObject({
      reclaimed: had.length,
    });
    for (const [entry] of had) this.#inFlight.delete(entry);
    await this.#expectReady(had.map(([, { message }]) => message));
  }

  async #expectReady(messages: readonly Held[]): Promise<void> {
    expect(await this.#readNew()).toEqual(messages.map(({ n }) => n));
    this.#ready.push(...messages);
    // Their slots pass to their new entries.
    for (const { n } of messages)
      if (this.#slots.get(n) === 2 && this.#limitsLanes) this.#hands.add(n);
  }

  /** The payloads of what has become ready since the last look. */
  async #readNew(): Promise<string[]> {
    const { redis, keys } = this.#moves;
    if (!this.#isReliable) return await redis.lrange(keys.ready, this.#ready.length, -1);
    const entries = await redis.xrange(keys.stream, `(${this.#lastEntry}`, "+");
    this.#lastEntry = entries.at(-1)?.[0] ?? this.#lastEntry;
    return entries.map(([, fields]) => payloadIn(fields));
  }

  /* The flow. */

  async #set(flow = this.#aFlow()): Promise<void> {
    const { redis, keys } = this.#moves;
    this.#story.push(
      `set ${flow.kind}, ${JSON.stringify(flow.pace)}, ahead ${flow.ahead}, ${wordsOf(flow.lane)}, own ${JSON.stringify([...flow.own])}`,
    );
    const rates = [flow.lane, ...flow.own.values()].some(({ step }) => step > 0);
    const isHeld = (await redis.exists(keys.room, keys.turns)) > 0;
    const args = {
      channel: keys.channel,
      kind: flow.kind,
      ...(flow.pace ?? { step: 0, burst: 0 }),
      declared: flow.kind === "none" ? "" : "text",
      isEmpty: 0,
      ahead: flow.ahead,
      lane: wordsOf(flow.lane),
      rates: rates ? 1 : 0,
      most: flow.most,
      slots: limitsLanes(flow) ? 1 : 0,
    };
    const rows = [...flow.own].map(([name, own]) => ({ name, own: wordsOf(own) }));
    await run(redis, this.#by(setFlow), keys, args, rows);

    const before = this.#flow;
    const used =
      before.pace === undefined ? 0 : Math.max(0, this.#arrival - this.#now) / before.pace.step;
    const { pace } = flow;
    this.#arrival =
      pace === undefined ? 0 : Math.round(this.#now + Math.min(used, pace.burst) * pace.step);
    for (const [lane, arrival] of this.#arrivals) {
      const [old, next] = [this.#limitOf(lane), limitIn(flow, lane)];
      const share = old.step > 0 ? Math.max(0, arrival - this.#now) / old.step : 0;
      this.#arrivals.set(lane, this.#now + Math.min(share, next.burst) * next.step);
    }
    const isLater = isHeld && flow.kind !== "lanes";
    this.#flow = isLater ? { ...NO_FLOW, kind: "lanes", pace } : flow;
    this.#target = isLater ? flow : undefined;
    this.#gone = [];
    if (!this.#limitsLanes) this.#hands.clear();
    if (flow.kind !== "lanes") this.#holds.clear();
    const kind = await redis.hget(keys.flow, "kind");
    expect(kind ?? "none").toBe(this.#flow.kind);
  }

  #aFlow(kind?: "lanes"): Flow {
    const random = this.#random;
    const paceOf = (): Pace => ({
      step: random.pick([1000, 1_000_000 / 30, 100_000, 350_000]),
      burst: random.pick([1, 1, 2, 5, 20]),
    });
    const laneOf = (): LanePace => ({
      ...(random.once(2) ? FREE : paceOf()),
      cost: random.pick([1, 1, 1, 1 / 3, 0.01, 100]),
      slots: random.once(3) ? random.pick([1, 2, 5]) : 0,
    });
    const pace = random.once(2) ? paceOf() : undefined;
    if (kind === undefined && random.once(8)) return NO_FLOW;
    if (kind === undefined && random.once(8))
      return { ...NO_FLOW, kind: "paced", pace: pace ?? paceOf() };
    const own = ["a", "b", "d"]
      .filter(() => random.once(3))
      .map((name) => [name, laneOf()] as const);
    const ahead = random.pick([1, 2, 2, 3, 8, 100]);
    const most = random.once(4) ? random.pick([1, 3, 10]) : 0;
    return { kind: "lanes", pace, ahead, most, lane: laneOf(), own: new Map(own) };
  }

  #limitOf(lane: string): LanePace {
    return limitIn(this.#flow, lane);
  }

  #tokensOf(lane: string): number {
    const limit = this.#limitOf(lane);
    return limit.step === 0 ? Infinity : tokensAt(this.#arrivals.get(lane) ?? 0, this.#now, limit);
  }

  #tokens(ago: number): number {
    const { pace } = this.#flow;
    return pace === undefined ? Infinity : tokensAt(this.#arrival, this.#now - ago * 1000, pace);
  }

  get #space(): number {
    const { ahead, most } = this.#flow;
    const inHand = this.#ready.length + this.#inFlight.size;
    const free = this.#isReliable && most > 0 ? most - inHand : Infinity;
    return Math.max(0, Math.min(ahead - this.#ready.length, free));
  }

  /** Whether any lane has a limit of what is in hand. In a plain queue nobody knows that. */
  get #limitsLanes(): boolean {
    return this.#isReliable && limitsLanes(this.#flow);
  }

  #freeOf(lane: string): number {
    const { slots } = this.#limitOf(lane);
    if (!this.#isReliable || slots === 0) return Infinity;
    const all = [...this.#ready, ...[...this.#inFlight.values()].map(({ message }) => message)];
    return Math.max(
      0,
      slots - all.filter((one) => one.lane === lane && this.#hands.has(one.n)).length,
    );
  }

  #isHeld(lane: string): boolean {
    return (this.#holds.get(lane) ?? 0) > this.#ms;
  }

  /* The transfer. */

  /** What is due by then, the earliest first, as a transfer finds it. */
  #due(
    latest: number,
    areRetries: boolean,
  ): { n: string; due: number; message: Held; isRetry: boolean }[] {
    const messages = [...this.#delayed.values()].map((message) => ({
      n: message.n,
      due: message.deadline,
      message,
      isRetry: false,
      bytes: message.member,
    }));
    const retries = [...this.#retries.values()]
      .filter(({ waits }) => areRetries && !waits)
      .map(({ message, due }) => ({
        n: message.n,
        due,
        message,
        isRetry: true,
        bytes: bytes(retryName({ address: addressOf(message).toString("latin1") }, GROUP)),
      }));
    return [...messages, ...retries]
      .filter(({ due }) => due <= latest)
      .toSorted(
        (a, b) =>
          a.due - b.due ||
          Number(a.isRetry) - Number(b.isRetry) ||
          Buffer.compare(a.bytes, b.bytes),
      );
  }

  /** Moves until nothing may go any more, as a mover does, or one that stands by. */
  async #move({
    limit,
    grace,
    isList,
  }: { limit?: number; grace?: number; isList?: boolean } = {}): Promise<number> {
    const random = this.#random;
    const isOfList = isList ?? (!this.#isReliable || random.once(8));
    const form = (random.once(4) ? pacedSweep : pacedTransfer)[isOfList ? "list" : "stream"];
    const options = {
      form,
      areRetries: !isOfList,
      limit: limit ?? random.pick([1, 2, 5, 100, 100, 100]),
      grace: grace ?? random.pick([0, 0, 0, 50]),
    };
    for (let i = 0; ; i++) {
      expect(i, "looks without an end").toBeLessThan(500);
      const next = await this.#look(options);
      if (next > this.#ms - options.grace) return next;
    }
  }

  async #look({
    form,
    areRetries,
    limit,
    grace,
  }: {
    form: typeof pacedTransfer.list;
    areRetries: boolean;
    limit: number;
    grace: number;
  }): Promise<number> {
    const { redis, keys } = this.#moves;
    const latest = this.#ms - grace;
    const look = Number((await redis.hget(keys.flow, "look")) ?? NaN);
    const due = this.#due(latest, areRetries);
    const inLanes = this.#flow.kind === "lanes";
    const entering = inLanes ? due.slice(0, limit) : due;
    const [tokens, space] = [this.#tokens(grace), this.#space];
    const shared = { shares: 1, arriving: "" };
    const args = { limit, grace, claim: 0, task: "task", known: 0, makes: 1, mark: 0, ...shared };
    const reply = await run(redis, this.#by(form), keys, args);
    const moved = await this.#readNew();
    this.#story.push(
      `${this.#now}: move ${limit} ${grace} ${areRetries ? "" : "list "}-> ${moved.join(" ")}, next ${reply.next}`,
    );
    const candidates = new Map<string, Held>();
    for (const one of entering) candidates.set(one.n, one.message);
    for (const [n, one] of inLanes ? this.#waiting : []) candidates.set(n, one);
    for (const [n, { message, waits }] of inLanes ? this.#retries : [])
      if (waits) candidates.set(n, message);
    const dropped = this.#expectDropped(reply, candidates);
    const messages = moved.map((n) => {
      expect(candidates.has(n), `${n} may go`).toBe(true);
      return candidates.get(n) as Held;
    });
    expect(reply.moved).toBe(moved.length);
    expect(new Set(moved).size).toBe(moved.length);
    for (const message of messages)
      expect(this.#isFit(message) || this.#retries.has(message.n)).toBe(true);

    if (inLanes) {
      if (moved.length > 0)
        expect(moved.length).toBeLessThanOrEqual(Math.min(tokens, space, limit));
      this.#expectOrder(messages, candidates, dropped);
      for (const { n, isRetry, message, due: since } of entering) {
        if (isRetry) this.#retries.set(n, { message, due: since, waits: true });
        else if (this.#delayed.delete(n)) this.#waiting.set(n, message);
      }
    } else {
      expect(moved.length).toBeLessThanOrEqual(tokens);
    }
    for (const lane of new Set(messages.map((one) => one.lane))) {
      const count = messages.filter((one) => one.lane === lane).length;
      expect(count, `of lane ${lane}`).toBeLessThanOrEqual(this.#tokensOf(lane));
      expect(count, `in hand of lane ${lane}`).toBeLessThanOrEqual(this.#freeOf(lane));
      expect(this.#isHeld(lane), `${lane} is held`).toBe(false);
    }
    for (const { n, lane } of inLanes && this.#isReliable ? messages : []) {
      const isOfLane = this.#limitOf(lane).slots > 0;
      if (isOfLane) this.#hands.add(n);
      if (isOfLane || this.#limitsLanes || this.#flow.most > 0)
        this.#slots.set(n, isOfLane ? 2 : 1);
    }
    for (const n of [...moved, ...dropped]) this.#drop(n);
    this.#ready.push(...messages);
    this.#use(messages);
    // Straight, what was dropped alone has noted that nothing is saved up.
    const arrival = Number((await redis.hget(keys.flow, "arrival")) ?? 0);
    if (moved.length === 0 && dropped.size > 0 && arrival === this.#now) this.#arrival = arrival;
    this.seen.turns += inLanes ? moved.length : 0;

    const isReal = entering.length > 0 || Number.isNaN(look) || look <= latest;
    await this.#expectRest({ reply, isReal, latest, grace, areRetries });
    return reply.next;
  }

  #expectDropped(reply: TransferReply, candidates: ReadonlyMap<string, Held>): Set<string> {
    const byAddress = new Map(
      [...candidates.values()].map((one) => [addressOf(one).toString("hex"), one] as const),
    );
    return new Set(
      reply.dropped.map(({ address, reason }) => {
        const message = byAddress.get(address.toString("hex")) as Held;
        expect(this.#isFit(message), `${message.n}, dropped because of ${reason}`).toBe(false);
        return message.n;
      }),
    );
  }

  #isFit({ onlyIf, deliverWithin, deadline }: Held): boolean {
    if (deliverWithin !== undefined && this.#now / 1000 > deadline + deliverWithin) return false;
    return onlyIf === undefined || this.#flags.get(onlyIf.key.slice(-1)) === true;
  }

  /** Within a lane the first turns have gone, in their order. */
  #expectOrder(
    moved: readonly Held[],
    candidates: ReadonlyMap<string, Held>,
    dropped: ReadonlySet<string>,
  ): void {
    const isGone = new Set(moved.map(({ n }) => n));
    for (const lane of new Set(moved.map((one) => one.lane))) {
      const gone = moved.filter((one) => one.lane === lane);
      expect(gone.map(({ n }) => n)).toEqual(gone.toSorted(compareTurns).map(({ n }) => n));
      const last = gone.at(-1) as Held;
      for (const one of candidates.values()) {
        if (one.lane !== lane || isGone.has(one.n) || dropped.has(one.n)) continue;
        expect(compareTurns(last, one), `${last.n} before ${one.n}`).toBeLessThan(0);
      }
    }
  }

  #use(messages: readonly Held[]): void {
    const { pace } = this.#flow;
    if (pace !== undefined && messages.length > 0) {
      const arrival = Math.min(this.#arrival, this.#now + pace.burst * pace.step);
      this.#arrival = Math.round(Math.max(arrival, this.#now) + messages.length * pace.step);
    }
    for (const { lane } of messages) {
      const { step } = this.#limitOf(lane);
      this.#arrivals.set(lane, Math.max(this.#arrivals.get(lane) ?? 0, this.#now) + step);
      this.#gone.push({ lane, at: this.#now });
    }
    this.#expectRate(this.#gone, pace);
    for (const lane of new Set(messages.map((one) => one.lane))) {
      this.#expectRate(
        this.#gone.filter((one) => one.lane === lane),
        this.#limitOf(lane),
      );
    }
  }

  /** No window that ends now has more than the rate allows. */
  #expectRate(gone: readonly { readonly at: number }[], pace: Pace | undefined): void {
    if (pace === undefined || pace.step === 0) return;
    for (const [i, { at }] of gone.entries()) {
      const most = pace.burst + (this.#now - at) / pace.step + 1e-3;
      expect(gone.length - i, `within ${this.#now - at} us`).toBeLessThanOrEqual(most);
    }
  }

  #waits(): Held[] {
    const retries = [...this.#retries.values()].filter(({ waits }) => waits);
    return [...this.#waiting.values(), ...retries.map(({ message }) => message)];
  }

  async #expectRest({
    reply,
    isReal,
    latest,
    grace,
    areRetries,
  }: {
    reply: TransferReply;
    isReal: boolean;
    latest: number;
    grace: number;
    areRetries: boolean;
  }): Promise<void> {
    const { redis, keys } = this.#moves;
    const { next } = reply;
    const { pace } = this.#flow;
    const [tokens, space] = [this.#tokens(grace), this.#space];
    const ofQueue =
      pace === undefined || tokens > 0
        ? latest
        : nextOf(this.#arrival, this.#now - grace * 1000, pace);
    const [first] = this.#due(Infinity, areRetries);
    if (first !== undefined) {
      const soonest = this.#flow.kind === "paced" ? ofQueue : latest;
      expect(next, `next, ${first.n} is due at ${first.due}`).toBeLessThanOrEqual(
        Math.max(first.due, soonest),
      );
    }
    const waits = this.#waits();
    if (waits.length === 0) {
      // The turn of a retry that was cancelled goes when it comes up.
      if (!this.#isReliable) await this.#expectNothingStale();
      if (this.#target !== undefined && (await redis.exists(keys.turns)) === 0 && isReal) {
        expect((await redis.hget(keys.flow, "kind")) ?? "none").toBe(this.#target.kind);
        this.#flow = this.#target;
        this.#target = undefined;
        this.#arrivals.clear();
        this.#gone = [];
        if (this.#flow.pace === undefined) this.#arrival = 0;
      }
      return;
    }
    // What may go now is left to the mover by one that stands by.
    if (!isReal || next <= this.#ms) return;
    this.seen.waits++;
    for (const one of waits) {
      const isLaneFree = this.#freeOf(one.lane) > 0 && !this.#isHeld(one.lane);
      const isStuck = tokens > 0 && space > 0 && this.#tokensOf(one.lane) > 0 && isLaneFree;
      expect(isStuck, `${one.n} of lane ${one.lane} waits, and may go`).toBe(false);
    }
    const ofLanes = waits.map(({ lane }) => {
      const hold = this.#holds.get(lane) ?? 0;
      const slot = this.#freeOf(lane) > 0 ? this.#ms : this.#ms + LOOK_AGAIN;
      if (this.#tokensOf(lane) > 0) return Math.max(hold, slot);
      const token = nextOf(this.#arrivals.get(lane) ?? 0, this.#now, this.#limitOf(lane));
      return Math.max(hold, slot, token);
    });
    const byWhen = Math.max(ofQueue, Math.min(...ofLanes));
    expect(next, "the next look").toBeLessThanOrEqual(
      space === 0 ? Math.max(byWhen, this.#ms + 100) : byWhen,
    );
  }

  async #expectNothingStale(): Promise<void> {
    const { redis, keys } = this.#moves;
    const { room, turns, lanes, resting } = keys;
    expect(await redis.exists(room, turns, lanes, resting), "nobody waits").toBe(0);
  }

  /* What people see. */

  async #check(isThorough: boolean): Promise<void> {
    const { redis, keys } = this.#moves;
    const delayed = this.#delayed.size + this.#waiting.size;
    expect(await run(redis, this.#by(sizeOfDelayed), keys, {})).toBe(delayed);
    expect(await run(redis, this.#by(sizeWithRetries), keys, {})).toBe(
      delayed + this.#retries.size,
    );
    expect(await run(redis, this.#by(countWaiting), keys, {})).toBe(this.#waits().length);
    if (!this.#isReliable && this.#waiting.size === 0) await this.#expectNothingStale();
    if (!isThorough) return;
    const names = [...this.#delayed.keys(), ...this.#waiting.keys(), ...this.#retries.keys()];
    const places = names.map(
      (n) => this.#placeOf(n) as { place: string; due: number; message: Held },
    );
    const byId = places.map(({ message }) => ({ id: addressOf(message), key: "" }));
    const byKey = [...this.#holders.keys()].map((key) => ({ id: "", key }));
    const found = await run(redis, this.#by(get), keys, { maxBytes: 1e9 }, [...byId, ...byKey]);
    const seen = found.messages.map(({ place, deadline }) => ({ place, due: deadline }));
    expect(seen).toEqual(
      [...names, ...this.#holders.values()].map((n) => {
        const one = this.#placeOf(n);
        return { place: this.#waiting.has(n) ? "waiting" : one?.place, due: one?.due };
      }),
    );
    const free = ["k0", "k1", "k2", "k3"].filter((key) => !this.#holders.has(key));
    const none = await run(
      redis,
      this.#by(get),
      keys,
      { maxBytes: 1e9 },
      free.map((key) => ({ id: "", key })),
    );
    expect(none.messages).toEqual([]);
  }

  /** Lets everything go, and looks at what is left. */
  async #end(): Promise<void> {
    const { redis, keys } = this.#moves;
    if (this.#random.once(2)) await this.#set(NO_FLOW);
    for (const name of ["x", "y"]) if (this.#flags.get(name) !== true) await this.#turnFlag();
    for (let i = 0; ; i++) {
      expect(i, "does not come to an end").toBeLessThan(2000);
      const next = await this.#move({ limit: 100, grace: 0, isList: !this.#isReliable });
      const left = this.#delayed.size + this.#waiting.size + this.#retries.size;
      const isTaken = this.#ready.length + this.#inFlight.size === 0;
      if (left === 0 && isTaken && next === Infinity) break;
      if (this.#isReliable) {
        await this.#read();
        await this.#settle();
      } else {
        await this.#take();
      }
      if (next > this.#ms && next < Infinity) await this.#turnClock(next * 1000 - this.#now);
    }
    if (this.#flow !== NO_FLOW) {
      await this.#turnClock(60_000_000);
      await this.#set(NO_FLOW);
      await this.#move({ limit: 100, grace: 0, isList: !this.#isReliable });
    }
    const { timeouts, room, turns, lanes, resting, lanePaces, hands, flow, retries, retrying } =
      keys;
    const all = [timeouts, room, turns, lanes, resting, lanePaces, hands, flow, retries, retrying];
    const left = await Promise.all(
      all.map(async (key) => ((await redis.exists(key)) === 1 ? key : "")),
    );
    expect(left.filter((key) => key !== "")).toEqual([]);
    expect(new Set(this.#done).size).toBe(this.#done.length);
  }
}

function limitIn({ lane, own }: Flow, name: string): LanePace {
  return own.get(name) ?? lane;
}

function limitsLanes({ lane, own }: Flow): boolean {
  return [lane, ...own.values()].some(({ slots }) => slots > 0);
}

function nameOf({ n, lane, priority, deadline, key }: Held): string {
  return `${n}(${lane}${priority === 0 ? "" : `^${priority}`} ${deadline}${key && ` ${key}`})`;
}

function payloadIn(fields: readonly string[]): string {
  return fields[fields.findIndex((name, i) => i % 2 === 0 && name === "p") + 1] ?? "";
}

test.each(upTo(CASES).map((i) => SEED + i))("lanes are as in the model: seed %i", async (seed) => {
  const one = new Case(seed, await newMoves());
  await one.run();
  // Otherwise it has shown nothing.
  expect(one.seen.turns).toBeGreaterThan(0);
  expect(one.seen.waits).toBeGreaterThan(0);
});
