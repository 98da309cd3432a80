import { ClosedError } from "../../errors.ts";
import type { Call } from "../../queue/call.ts";
import type { Taken } from "../../ready/pops.ts";
import type { PausableSource } from "../../ready/open-sources.ts";
import type { ReadyList } from "../../ready/ready-list.ts";
import { Taker } from "../../ready/taker.ts";
import type { WaitOptions } from "../../run/waiters.ts";
import { grouped } from "../../queue/grouped.ts";
import { Gathering, type GatheringSource } from "./gathering.ts";
import { formatFact } from "../ring/fact.ts";
import type { Part } from "../parts/part.ts";
import type { Parts } from "../parts/parts.ts";
import { isRefusedByFact } from "../parts/refusal.ts";
import { sharesOf } from "../ring/shares.ts";
import { ELSEWHERE, restOf, Taking } from "./taking.ts";
import { queueTime } from "../../time/runtime.ts";

/** A taker with its own connection, and the parts that it takes from. */
interface Intake extends GatheringSource<Taken> {
  readonly taker: Taker;
  /** The only partition of this intake; undefined if the intake serves all parts on a server. */
  readonly partition: number | undefined;
  parts: readonly Part[];
}

/**
 * The ready messages of a queue, as bytes, whichever parts it has; a {@link ReadyList} holds those of one part.
 *
 * An ordinary queue has one connection. The partitions on one server share a connection: one BLPOP names all their
 * LISTs, in rotating order. With several servers there is one connection to each. On a Cluster a BLPOP can name LISTs
 * of one slot only, so a process takes from a share of the partitions, over one connection each. The share is large
 * enough for each partition to be served by three processes.
 *
 * Callers check the arguments. Every method rejects with `ClosedError` once the queue is closed, and with `RedisError`
 * if Redis refuses a command or its reply is lost.
 */
export class ReadyMessages {
  readonly #parts: Parts;
  readonly #name: string;
  readonly #gathering: Gathering<Taken>;
  readonly #intakes = new Map<string, Intake>();
  /** The intake that waits ask directly, since it serves everything: fewer commands serve many calls. */
  #direct: Intake | undefined;
  readonly #closings = new Set<Promise<void>>();
  /** Counts pushes and pops, each of which begins at the next partition. */
  #rotation = 0;
  readonly #taking: Taking;
  #isTaking = false;
  #isClosed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#name = `queue "${parts.name}"`;
    this.#taking = new Taking(parts);
    this.#gathering = new Gathering(this.#name);
    parts.onChange(() => this.#onChange());
  }

  /** @throws {ClosedError} once {@link close} was called; running handlers may still offer then. */
  checkTaking(): void {
    if (this.#isClosed) throw new ClosedError(this.#name);
  }

  /** @throws {ClosedError} once the queue is closed. */
  checkOpen(): void {
    this.#parts.first.queue.checkOpen();
  }

  /**
   * Waits for up to `max` payloads of this queue, or of `others` if it has none; see {@link Taker.wait}.
   *
   * @throws {TypeError} if there are others and one of the queues is partitioned: their LISTs may be in other slots.
   */
  async take(
    max: number,
    options: WaitOptions,
    others: readonly ReadyMessages[] = [],
  ): Promise<readonly Taken[]> {
    this.checkTaking();
    const all = [this, ...others];
    for (const one of all) one.#parts.plainTakes.noteBegun();
    try {
      if (others.length > 0) {
        const [first, ...rest] = all.map((one) => one.#onlyList) as [ReadyList];
        return await first.takeAny(max, options, rest);
      }
      const taken = await this.#wait(max, options);
      this.#parts.counters.taken += taken.length;
      return taken;
    } finally {
      for (const one of all) one.#parts.plainTakes.noteDone();
    }
  }

  /**
   * Returns `other`, to be polled together with this queue.
   *
   * @throws {TypeError} if one of the two is partitioned.
   */
  beside(other: ReadyMessages): ReadyMessages {
    for (const one of [this, other]) void one.#onlyList;
    return other;
  }

  #wait(max: number, options: WaitOptions): Promise<readonly Taken[]> {
    if (this.#parts.following.isOrdinary) return this.#take(max, options);
    return this.#taking.during(() => this.#take(max, options));
  }

  async #take(max: number, options: WaitOptions): Promise<readonly Taken[]> {
    if (!this.#isTaking) {
      this.#isTaking = true;
      this.#parts.isUsed = true;
      this.#onChange();
    }
    const { isOrdinary, fact } = this.#parts.following;
    if (!isOrdinary && fact === undefined) {
      await this.#parts.following.known(options);
      this.checkTaking();
    }
    const direct = this.#direct;
    if (direct === undefined) return await this.#gathering.take(max, options);
    const startedAt = options.timeout === Infinity ? 0 : queueTime.now();
    try {
      return await direct.wait(max, options);
    } catch (error) {
      if (error !== ELSEWHERE) throw error;
      return await this.#wait(max, restOf(options, startedAt));
    }
  }

  /** The LIST of an ordinary queue. */
  get #onlyList(): ReadyList {
    if (this.#parts.following.isOrdinary) return this.#parts.first.ready;
    throw new TypeError(`${this.#name} is partitioned: it cannot be polled with others`);
  }

  async pop(max: number, call?: Call): Promise<readonly Buffer[]> {
    this.#parts.isUsed = true;
    this.#parts.plainTakes.noteBegun();
    return await this.#pop(max, call).finally(() => this.#parts.plainTakes.noteDone());
  }

  async #pop(max: number, call?: Call): Promise<readonly Buffer[]> {
    const payloads: Buffer[] = [];
    let failure: unknown;
    for (const part of await this.#rotated(call)) {
      if (payloads.length >= max) break;
      try {
        payloads.push(...(await part.ready.pop(max - payloads.length, call)));
      } catch (error) {
        // Nobody else has the payloads taken so far, and other partitions may be reachable.
        failure ??= error;
      }
    }
    if (payloads.length === 0 && failure !== undefined) throw failure;
    return payloads;
  }

  /** Puts payloads at the end. A push that is sent again stores them twice. */
  async push(payloads: readonly Buffer[], call?: Call): Promise<void> {
    this.#parts.isUsed = true;
    for (;;) {
      if (this.#parts.following.isOrdinary)
        return await this.#parts.first.ready.push(payloads, call);
      const fact = await this.#parts.following.known(call);
      const { ready } = this.#parts.at(this.#rotation++ % fact.to);
      try {
        return await ready.push(payloads, { ...call, knownFact: formatFact(fact) });
      } catch (error) {
        if (!isRefusedByFact(error)) throw error;
        await this.#parts.following.newerThan(fact, error, call);
      }
    }
  }

  async peek(call?: Call): Promise<Buffer | undefined> {
    for (const part of await this.#parts.all(call)) {
      const payload = await part.ready.peek(call);
      if (payload !== undefined) return payload;
    }
    return undefined;
  }

  size(call?: Call): Promise<number> {
    return this.#parts.sum(({ ready }) => ready.size(call), call);
  }

  async readAll(call?: Call): Promise<Buffer[]> {
    return (await this.#parts.onAll(({ ready }) => ready.readAll(call), call)).flat();
  }

  clear(call?: Call): Promise<number> {
    return this.#parts.sum(({ ready }) => ready.clear(call), call);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#taking.close();
    const takers = Array.from(this.#intakes.values(), ({ taker }) => taker.close());
    await Promise.all([this.#gathering.close(), ...takers, ...this.#closings]);
  }

  /** Resolves when no taker holds a payload of a partition that this process has stopped taking from. */
  async left(): Promise<void> {
    await Promise.all(this.#closings);
  }

  /** The parts, with a different one first each time. */
  async #rotated(call?: Call): Promise<Part[]> {
    const parts = await this.#parts.all(call);
    const first = this.#rotation++ % parts.length;
    return [...parts.slice(first), ...parts.slice(0, first)];
  }

  #onChange(): void {
    if (!this.#isTaking || this.#isClosed) return;
    const { active } = this.#parts;
    const { isOrdinary } = this.#parts.following;
    const isShared = (part: Part) => !isOrdinary && part.queue.server.isCluster;
    const former = [
      ...this.#takeAll(active.filter((part) => !isShared(part))),
      ...this.#takeShare(active.filter(isShared)),
    ];
    const [only] = this.#intakes.values();
    const isDirect = this.#intakes.size === 1 && (isOrdinary || this.#parts.serverCount === 1);
    const before = this.#direct;
    this.#direct = isDirect && only?.partition === undefined ? only : undefined;
    if (before !== this.#direct) before?.taker.dismiss(ELSEWHERE);
    const released = this.#gathering.setSources([...this.#intakes.values()]);
    for (const { taker } of former) {
      // A closed taker puts nothing back, so close it once the gathering has none of its messages.
      this.#awaitClosing(released.then(() => taker.close()));
    }
  }

  /** Keeps one intake for each server, with all its parts. Returns the intakes that are no longer needed. */
  #takeAll(all: readonly Part[]): Intake[] {
    const byServer = grouped(
      all,
      ({ partition }) => `server ${Math.max(0, partition) % this.#parts.serverCount}`,
    );
    // The queue no longer has a part on these servers.
    const former = [...this.#intakes].filter(
      ([name, { partition }]) => partition === undefined && !byServer.has(name),
    );
    for (const [name] of former) this.#intakes.delete(name);
    for (const [name, parts] of byServer) {
      const intake = this.#intakes.get(name);
      if (intake === undefined) this.#intakes.set(name, this.#newIntake(parts, parts[0] as Part));
      else this.#setParts(intake, parts);
    }
    return former.map(([, intake]) => intake);
  }

  /** Keeps one intake for each partition in this process's share. Returns the intakes that are no longer needed. */
  #takeShare(all: readonly Part[]): Intake[] {
    const { members } = this.#taking;
    const { self } = this.#parts.following;
    const indexes = all.length > 0 ? sharesOf(members, self, all.length, PROCESSES) : [];
    const share = indexes.map((i) => all[i] as Part);
    const isKept = ({ partition }: Intake) => share.some((part) => part.partition === partition);
    const former = [...this.#intakes].filter(
      ([, intake]) => intake.partition !== undefined && !isKept(intake),
    );
    for (const [name] of former) this.#intakes.delete(name);
    for (const part of share) {
      const name = `partition ${part.partition}`;
      if (this.#intakes.has(name)) continue;
      this.#intakes.set(name, this.#newIntake([part], part, part.partition));
    }
    return former.map(([, intake]) => intake);
  }

  #setParts(intake: Intake, parts: readonly Part[]): void {
    // Setting the same sources again would end the block under way.
    if (isSame(intake.parts, parts)) return;
    intake.parts = parts;
    this.#awaitClosing(intake.taker.setSources(parts.map(sourceOf)));
  }

  #awaitClosing(closing: Promise<void>): void {
    const closed = closing.finally(() => this.#closings.delete(closed));
    this.#closings.add(closed);
  }

  #newIntake(parts: readonly Part[], { queue: { server } }: Part, partition?: number): Intake {
    const taker = new Taker(parts.map(sourceOf), server, {
      order: "rotating",
      isSparing: partition !== undefined,
      name: this.#name,
    });
    return {
      taker,
      partition,
      parts,
      work: server.troubles.work(),
      wait: (max, options) => taker.wait(max, options),
      putBack: (messages) => taker.putBack(messages),
    };
  }
}

function sourceOf({ queue: { keys }, pauses }: Part): PausableSource {
  return { ready: keys.ready, receipts: keys.receipts, pauses };
}

function isSame(a: readonly Part[], b: readonly Part[]): boolean {
  return a.length === b.length && a.every((part, i) => part === b[i]);
}

/** How many processes take from each partition on a Cluster. */
const PROCESSES = 3;
