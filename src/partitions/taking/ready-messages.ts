import { ClosedError, RedisError } from "../../errors.ts";
import type { Call } from "../../queue/call.ts";
import type { Taken } from "../../ready/pops.ts";
import type { PausableSource } from "../../ready/open-sources.ts";
import type { Ready } from "../../ready/ready-list.ts";
import { Taker } from "../../ready/taker.ts";
import type { WaitOptions } from "../../run/waiters.ts";
import { grouped } from "../../queue/grouped.ts";
import { Gathering, type GatheringSource } from "./gathering.ts";
import { formatFact } from "../ring/fact.ts";
import type { Part } from "../parts/part.ts";
import type { Parts } from "../parts/parts.ts";
import { isRefusedByFact } from "../parts/refusal.ts";
import { sharesOf } from "../ring/shares.ts";
import { Taking } from "./taking.ts";

/** A taker with its own connection, and the parts that it takes from. */
interface Intake extends GatheringSource<Taken> {
  readonly taker: Taker;
  /** The only partition of this intake; undefined if the intake serves all parts on a server. */
  readonly partition: number | undefined;
  parts: readonly Part[];
}

/**
 * The ready messages of a partitioned queue, as bytes; a {@link ReadyList} holds those of one part.
 *
 * The partitions on one server share a connection: one BLPOP names all their LISTs, in rotating order. With several
 * servers there is one connection to each. On a Cluster a BLPOP can name LISTs of one slot only, so a process takes from
 * a share of the partitions, over one connection each. The share is large enough for each partition to be served by
 * three processes.
 *
 * Callers check the arguments. Every method rejects with `ClosedError` once the queue is closed, and with `RedisError`
 * if Redis refuses a command or its reply is lost.
 */
export class ReadyMessages implements Ready {
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

  /** @throws {TypeError} since LISTs of different queues may be in different slots. */
  get onlyList(): never {
    throw new TypeError(`${this.#name} is partitioned: it cannot be polled with others`);
  }

  /** Waits for up to `max` payloads; see {@link Taker.wait}. */
  async take(max: number, options: WaitOptions): Promise<readonly Taken[]> {
    this.checkTaking();
    const { plainTakes } = this.#parts;
    plainTakes.noteBegun();
    try {
      return await this.#taking.during(() => this.#take(max, options));
    } finally {
      plainTakes.noteDone();
    }
  }

  async #take(max: number, options: WaitOptions): Promise<readonly Taken[]> {
    if (!this.#isTaking) {
      this.#isTaking = true;
      this.#onChange();
    }
    if (this.#parts.following.fact === undefined) {
      await this.#parts.following.known(options);
      this.checkTaking();
    }
    return await (this.#direct?.wait(max, options) ?? this.#gathering.take(max, options));
  }

  /** Takes up to `max` payloads without waiting; see {@link ReadyList.pop}. */
  async pop(max: number, call?: Call): Promise<readonly Taken[]> {
    const taken: Taken[] = [];
    let failure: unknown;
    for (const part of await this.#rotated(call)) {
      if (taken.length >= max) break;
      try {
        taken.push(...(await part.ready.pop(max - taken.length, call)));
      } catch (error) {
        // Only this call has the payloads taken so far, and other partitions may be reachable.
        failure ??= error;
      }
    }
    if (taken.length === 0 && failure !== undefined) throw failure;
    return taken;
  }

  /**
   * Puts payloads back, oldest first, each to the head of its LIST; if the queue no longer has that partition, behind what is
   * ready in another one. Never rejects; resolves once this process holds none of them.
   */
  async putBack(messages: readonly Taken[]): Promise<void> {
    const bySource = grouped(messages, ({ source }) => source.ready);
    const puts = Array.from(bySource, async ([ready, some]) => {
      const part = this.#parts.active.find(({ queue: { keys } }) => keys.ready === ready);
      if (part !== undefined) return await part.ready.putBack(some);
      try {
        await this.push(some.map(({ payload }) => payload));
      } catch (error) {
        const doing = `gave up giving back ${some.length} message(s) to ${this.#name}`;
        this.#parts.first.queue.report(new RedisError(doing, error));
      }
    });
    await Promise.all(puts);
  }

  /** Puts payloads at the end. A push that is sent again stores them twice. */
  async push(payloads: readonly Buffer[], call?: Call): Promise<void> {
    for (;;) {
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
    const former = [
      ...this.#takeAll(active.filter((part) => !isShared(part))),
      ...this.#takeShare(active.filter(isShared)),
    ];
    const [only] = this.#intakes.values();
    const isDirect = this.#intakes.size === 1 && this.#parts.serverCount === 1;
    this.#direct = isDirect && only?.partition === undefined ? only : undefined;
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
    noteUse(parts);
    this.#awaitClosing(intake.taker.setSources(parts.map(sourceOf)));
  }

  #awaitClosing(closing: Promise<void>): void {
    const closed = closing.finally(() => this.#closings.delete(closed));
    this.#closings.add(closed);
  }

  #newIntake(parts: readonly Part[], { queue: { server } }: Part, partition?: number): Intake {
    noteUse(parts);
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
      putBack: (messages) => void taker.putBack(messages),
    };
  }
}

/** Whether processes divide the part among them: on a Cluster each takes from a share of the partitions. */
function isShared({ queue }: Part): boolean {
  return queue.server.isCluster;
}

function noteUse(parts: readonly Part[]): void {
  for (const { queue } of parts) queue.isUsed = true;
}

function sourceOf({ queue: { keys }, pauses }: Part): PausableSource {
  return { ready: keys.ready, receipts: keys.receipts, pauses };
}

function isSame(a: readonly Part[], b: readonly Part[]): boolean {
  return a.length === b.length && a.every((part, i) => part === b[i]);
}

/** How many processes take from each partition on a Cluster. */
const PROCESSES = 3;
