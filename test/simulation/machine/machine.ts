import type { Redis } from "ioredis";
import { Random } from "../random.ts";
import type { FaultRequest, Note, Noted, ProcessOptions, Sim, SimProcess, World } from "../sim.ts";
import { Claims } from "./claims.ts";
import { Choice, type Candidate } from "./choice.ts";
import { mayRun, VirtualClock, type VirtualTimer } from "./clock.ts";
import { Connection } from "./connection.ts";
import { Faults } from "./faults.ts";
import { surround } from "./globals.ts";
import { owners, type Owner } from "./owner.ts";
import { Process } from "./process.ts";
import { turn, type SimServer } from "./server.ts";
import type { Stage } from "./stage.ts";
import type { Trace } from "./trace.ts";
import { carry, endBlock, gather } from "./wire.ts";

/** How a run differs from what its seed says: for shrinking a failure. */
export interface Reduction {
  /** The faults of the plan that are kept, by number. All of them if undefined. */
  readonly faults?: readonly number[];
  /** Operations that are left out, by number. */
  readonly without?: readonly number[];
  /** From this step on the oldest thing happens first. */
  readonly orderlyFrom?: number;
  /** Waits after each event, and fails if anything still moves: slow. */
  readonly isWatched?: boolean;
}

/** Something that is held. */
type Held =
  | (Candidate & {
      readonly kind: "connect" | "send" | "end" | "deliver" | "unblock";
      readonly connection: Connection;
    })
  | (Candidate & { readonly kind: "timer"; readonly timer: VirtualTimer })
  | (Candidate & { readonly kind: "task"; readonly task: Task });

/** Something of the world that waits for its turn: the start of an actor, a look from outside. */
interface Task {
  readonly owner: Owner;
  readonly since: number;
  /** Returns what the trace says of it. */
  readonly begin: () => Promise<string> | string;
}

/**
 * One run of a world: releases what is held, one thing after another, until the world has ended.
 *
 * Between two releases this process is quiet (all microtasks, ticks and immediates are done, for nothing else is under
 * way), and so is Redis.
 */
export class Machine implements Sim, Stage {
  readonly seed: number;
  readonly random: Random;
  readonly history: Noted[] = [];
  readonly violations: string[] = [];
  readonly trace: Trace;
  readonly clock = new VirtualClock();
  readonly choice: Choice;
  readonly servers: readonly SimServer[];
  readonly faults: Faults;
  readonly claims = new Claims();
  readonly processes: Process[] = [];
  connections: Connection[] = [];
  step = 0;
  /** How many operations the world has asked for. */
  wantCount = 0;
  readonly #world: World;
  readonly #reduction: Reduction;
  readonly #schedule: Random;
  /** The mean time that something takes on its way (ms). */
  readonly #latency: number;
  readonly #tasks: Task[] = [];
  readonly #actors = new Map<number, string>();
  #ageCount = 0;
  #connectionCount = 0;
  #actorCount = 0;
  #hasEnded = false;

  constructor(
    seed: number,
    world: World,
    servers: readonly SimServer[],
    trace: Trace,
    reduction: Reduction = {},
  ) {
    this.seed = seed;
    this.trace = trace;
    this.servers = servers;
    this.#world = world;
    this.#reduction = reduction;
    this.random = new Random(seed, "world");
    this.#schedule = new Random(seed, "schedule");
    this.choice = new Choice(this.#schedule);
    this.#latency = this.#schedule.magnitude(0.02, 2);
    this.faults = new Faults(this, world, new Random(seed, "faults"), reduction.faults);
  }

  /** Runs the world, and returns what is wrong. */
  async run(): Promise<readonly string[]> {
    const { skew = 3000 } = this.#world;
    for (const server of this.servers) {
      await server.begin();
      server.runId = `${this.seed.toString(16).padStart(39, "0")}${server.index}`;
      server.offset = server.index === 0 ? 0 : this.#schedule.between(-skew, skew);
    }
    surround({
      clock: this.clock,
      date: () => EPOCH + this.clock.now,
      random: new Random(this.seed, "library"),
    });
    const onRejection = (reason: unknown) => this.#violate("an unhandled rejection", reason);
    process.on("unhandledRejection", onRejection);
    try {
      const world = this.go("world", undefined, () => this.#world.run(this));
      void world.then(() => (this.#hasEnded = true));
      await this.#releaseUntil(() => this.#hasEnded, this.#world.limit ?? LIMIT);
      if (this.violations.length === 0) await this.#expectRest();
    } finally {
      process.off("unhandledRejection", onRejection);
      await this.#tearDown();
    }
    if (this.violations.length === 0) this.violations.push(...(await this.#world.check(this)));
    return this.violations;
  }

  get control(): Redis {
    return (this.servers[0] as SimServer).control;
  }

  get controls(): readonly Redis[] {
    return this.servers.map((server) => server.control);
  }

  get elapsed(): number {
    return this.clock.now;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  now(server = 0): number {
    return Math.floor(this.serverTime(this.servers[server] as SimServer) * 1000) / 1000;
  }

  serverTime(server: SimServer): number {
    return EPOCH + this.clock.now + server.offset;
  }

  byId(id: number): Connection | undefined {
    return this.connections.find((connection) => connection.id === id);
  }

  connectionsTo(server: SimServer): readonly Connection[] {
    return this.connections.filter((connection) => connection.server === server);
  }

  newProcess(name: string, options: ProcessOptions = {}): SimProcess {
    const process = new Process(this, name, this.processes.length, options);
    this.processes.push(process);
    return process;
  }

  go(name: string, process: SimProcess | undefined, act: () => Promise<void>): Promise<void> {
    const owner = process === undefined ? WORLD : (process as Process).owner;
    const number = this.#actorCount++;
    return new Promise((resolve) => {
      if (!owner.isAlive) {
        resolve();
        return;
      }
      this.#actors.set(number, name);
      const end = () => {
        this.#actors.delete(number);
        resolve();
      };
      void process?.crashed.then(end);
      this.#add(owner, () =>
        owners.run(owner, () => {
          act().then(end, (error: unknown) => {
            if (owner.isAlive) this.#violate(`${name} threw`, error);
            end();
          });
          return `${name} starts`;
        }),
      );
    });
  }

  async sleep(duration: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.clock.arm(resolve, duration);
    });
  }

  note(event: Note): void {
    const owner = owners.getStore();
    if (owner?.isAlive === false) return;
    this.record(event, owner === WORLD ? undefined : owner?.name);
  }

  record(event: Note, process: string | undefined): void {
    this.history.push({ at: this.elapsed, step: this.step, process, event });
    this.trace.add(this.elapsed, `${process ?? "world"} notes ${JSON.stringify(event)}`);
  }

  tell(text: string): void {
    this.trace.add(this.elapsed, text);
  }

  mix(bytes: Buffer): void {
    this.trace.mix(bytes);
  }

  wants(): boolean {
    return !(this.#reduction.without ?? []).includes(this.wantCount++);
  }

  outside<Result>(look: () => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#add(owners.getStore() ?? WORLD, async () => {
        await look().then(resolve, reject);
        return "a look from outside";
      });
    });
  }

  fault(fault: FaultRequest): void {
    this.faults.request(fault);
  }

  calm(): void {
    this.faults.calm();
  }

  /** Begins a connection of the process that runs now. */
  connect(owner: Owner, server: SimServer): Connection {
    const ages = { next: () => this.#ageCount++ };
    const connection = new Connection(owner, server, ++this.#connectionCount, ages);
    if (owner.isAlive) this.connections.push(connection);
    return connection;
  }

  #add(owner: Owner, begin: Task["begin"]): void {
    this.#tasks.push({ owner, since: this.#ageCount++, begin });
  }

  /** Releases one thing after another. */
  async #releaseUntil(isDone: () => boolean, limit: number): Promise<void> {
    while (!isDone()) {
      if (this.violations.length > 0) return;
      if (this.elapsed > limit || this.step > MAX_STEPS) {
        const who = [...this.#actors.values()].join(", ");
        this.violations.push(`still not done after ${limit} ms and ${this.step} events: ${who}`);
        return;
      }
      await this.faults.apply();
      const held = this.#held();
      if (held.length === 0) {
        if (!this.#passTime()) {
          const who = [...this.#actors.values()].join(", ");
          this.violations.push(`nothing can happen any more; waiting: ${who}`);
          return;
        }
        continue;
      }
      const isOrderly = this.step >= (this.#reduction.orderlyFrom ?? Infinity);
      await this.#release(this.choice.next(held, isOrderly));
    }
  }

  async #release(held: Held): Promise<void> {
    this.step++;
    if ("connection" in held) {
      this.clock.now += -Math.log(1 - this.#schedule.next()) * this.#latency;
    }
    const fate = held.kind === "send" ? await this.faults.meet(held.connection) : "pass";
    if (fate === "stop") return;
    const before = "connection" in held ? held.connection.received.length : 0;
    try {
      this.tell(await this.#do(held));
    } catch (error) {
      this.#violate(`at a ${held.kind}`, error);
    }
    if (fate !== "pass") await fate.after(before);
    await turn();
    if (this.#reduction.isWatched) await this.#expectQuiet(held.kind);
  }

  /** Nothing may move by itself once a turn has passed. */
  async #expectQuiet(kind: string): Promise<void> {
    const moved = () => {
      const unread = this.connections.filter(({ link }) => link?.hasUnread);
      return this.#ageCount + this.clock.armCount + unread.length;
    };
    const before = moved();
    for (let i = 0; i < 5; i++) await turn();
    await new Promise((resolve) => {
      setTimeout(resolve, 1);
    });
    await turn();
    if (moved() !== before) this.violations.push(`something moved by itself after a ${kind}`);
  }

  /** Lets something happen, and returns what the trace says of it. */
  async #do(held: Held): Promise<string> {
    if (held.kind === "timer") {
      const { timer } = held;
      const { dueAt, owner } = timer;
      this.clock.fire(timer);
      return `${owner.name} timer due ${dueAt.toFixed(3)}`;
    }
    if (held.kind === "task") {
      const { owner, begin } = held.task;
      this.#tasks.splice(this.#tasks.indexOf(held.task), 1);
      return owner.isAlive ? await begin() : `${owner.name} is dead`;
    }
    const { connection } = held;
    const { label } = connection;
    switch (held.kind) {
      case "connect":
        await this.#open(connection);
        return `${label} connects`;
      case "send":
        return `${label} > ${await this.#carry(connection)}`;
      case "end":
        connection.lose();
        await gather(connection.server, this);
        return `${label} > ends`;
      case "deliver": {
        const [next] = connection.received;
        if (next !== undefined && "raw" in next) this.mix(next.raw);
        const text = connection.deliver(this.elapsed);
        const isWhole = connection.received[0]?.since !== next?.since;
        if (isWhole && next !== undefined && "raw" in next && next.claim !== undefined)
          this.claims.note(connection.owner, next.claim, this.elapsed);
        return `${label} < ${text}`;
      }
      default:
        await endBlock(connection, this);
        return `${label} has blocked long enough`;
    }
  }

  /** Everything that may happen now. */
  #held(): Held[] {
    const { now } = this.clock;
    const held: Held[] = [];
    for (const task of this.#tasks) held.push({ kind: "task", line: 0, since: task.since, task });
    if (this.connections.some((connection) => connection.isOver)) {
      this.connections = this.connections.filter((connection) => !connection.isOver);
    }
    for (const connection of this.connections) {
      if (!connection.isSilent && connection.heldUntil <= now) this.#heldOf(connection, held);
    }
    for (const timer of this.clock.timers) {
      if (timer.dueAt > now || !mayRun(timer.owner, now)) continue;
      timer.age ??= this.#ageCount++;
      held.push({ kind: "timer", line: -timer.owner.pid, since: timer.age, timer });
    }
    return held;
  }

  #heldOf(connection: Connection, held: Held[]): void {
    const { id, sent, received, owner } = connection;
    const [outward, inward] = [2 * id, 2 * id + 1];
    if (connection.isConnecting) {
      // A process that stands still hears later that it is connected.
      if (connection.isLost || (owner.isAlive && !mayRun(owner, this.elapsed))) return;
      held.push({ kind: "connect", line: outward, since: connection.since, connection });
      return;
    }
    if (!connection.isLost) {
      const [first] = sent;
      const isBlocked = connection.blockedUntil !== undefined;
      if (isBlocked ? sent.at(-1) === "end" : first === "end") {
        held.push({ kind: "end", line: outward, since: this.#ageCount, connection });
      } else if (!isBlocked && first !== undefined && first !== "end") {
        held.push({ kind: "send", line: outward, since: first.since, connection });
      }
      if ((connection.blockedUntil ?? Infinity) <= this.elapsed) {
        held.push({ kind: "unblock", line: inward, since: this.#ageCount, connection });
      }
    }
    const [next] = received;
    const isHere = connection.nextAt(this.elapsed) <= this.elapsed;
    if (
      next !== undefined &&
      isHere &&
      mayRun(owner, this.elapsed) &&
      !connection.stream.destroyed
    ) {
      held.push({ kind: "deliver", line: inward, since: next.since, connection });
    }
  }

  async #open(connection: Connection): Promise<void> {
    const link = await connection.server.open();
    connection.link = link;
    connection.realId = (await link.ask("CLIENT", "ID")) as number;
    if (mayRun(connection.owner, this.elapsed) && !connection.stream.destroyed) {
      connection.connected();
    } else {
      connection.isConnecting = false;
      connection.lose();
    }
  }

  async #carry(connection: Connection): Promise<string> {
    const first = connection.sent.shift();
    if (first === undefined || first === "end") return "";
    return await carry(connection, first.words, this);
  }

  /** Lets time pass until something can happen. Returns false if nothing ever will. */
  #passTime(): boolean {
    let next = Math.min(this.clock.nextDueAt, this.faults.nextAt);
    for (const connection of this.connections) {
      const { blockedUntil, heldUntil, isSilent, owner } = connection;
      if (isSilent) continue;
      const nextAt = connection.nextAt(this.elapsed);
      if (nextAt > this.elapsed) next = Math.min(next, nextAt);
      if (blockedUntil !== undefined) next = Math.min(next, Math.max(blockedUntil, heldUntil));
      if (heldUntil > this.elapsed) next = Math.min(next, heldUntil);
      if (owner.isAlive && owner.stalledUntil > this.elapsed) {
        next = Math.min(next, owner.stalledUntil);
      }
    }
    if (next === Infinity) return false;
    this.clock.now = Math.max(this.clock.now, next);
    return true;
  }

  /** After the world has ended, everything has to come to rest: no timer, no connection is left. */
  async #expectRest(): Promise<void> {
    this.faults.calm();
    const isAtRest = () => this.clock.timers.size === 0 && this.#held().length === 0;
    const until = this.elapsed + REST;
    while (!isAtRest() && this.elapsed < until && this.violations.length === 0) {
      const held = this.#held();
      if (held.length > 0) await this.#release(this.choice.next(held, true));
      else if (!this.#passTime()) break;
    }
    const open = this.connections.filter(({ owner }) => owner.isAlive).map(({ label }) => label);
    const timers = [...this.clock.timers].map(({ owner }) => `a timer of ${owner.name}`);
    const left = [...open, ...timers];
    if (left.length > 0) this.violations.push(`still there after the end: ${left.join(", ")}`);
  }

  async #tearDown(): Promise<void> {
    for (const process of this.processes) process.owner.isAlive = false;
    this.clock.timers.clear();
    for (const { link } of this.connections) link?.close();
    this.connections = [];
    await this.faults.end();
    for (const server of this.servers) {
      await server.settled();
      await server.tidy();
    }
    this.trace.add(this.elapsed, "the end");
  }

  #violate(what: string, error: unknown): void {
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.violations.push(`${what}: ${why}`);
  }
}

/** The world's actors belong to no process. */
const WORLD: Owner = { name: "world", pid: 1, isAlive: true, stalledUntil: 0 };

/** The instant at which each run begins (epoch ms): 2030-01-01. */
const EPOCH = 1_893_456_000_000;

/** Milliseconds, see `World.limit`. */
const LIMIT = 600_000;

const MAX_STEPS = 50_000;

/** Milliseconds within which everything has to come to rest. */
const REST = 30_000;
