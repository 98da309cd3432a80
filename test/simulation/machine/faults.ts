import type { Random } from "../random.ts";
import { LATE_REPLIES, RESTORE, type FaultKind, type FaultRequest, type World } from "../sim.ts";
import type { Connection } from "./connection.ts";
import type { Copy, SimServer } from "./server.ts";
import type { Stage, StagedProcess } from "./stage.ts";
import { gather } from "./wire.ts";

/** A fault of the plan. What it hits is drawn when it comes. */
interface Planned extends FaultRequest {
  /** The step from which on it may come. */
  readonly step: number;
}

/** A fault that waits for a command. */
interface Armed extends Planned {
  /** How many commands it lets pass. */
  skip: number;
  /** It concerns a command only if no more of its kind have come. */
  readonly most: number;
  readonly isBefore: boolean;
}

/** A server that will fall back: from which step and which moment on (elapsed ms), and to what. */
interface FallBack {
  readonly step: number;
  readonly at: number;
  readonly server: SimServer;
  readonly copy: Copy;
  /** When the copy was made (elapsed ms). */
  readonly since: number;
  /** Whether it is a backup that is restored, and not a replica that lagged. */
  readonly isRestore: boolean;
}

/** What becomes of a command that is about to be carried out. */
export type Fate =
  | "pass"
  | "stop"
  /** Carry it out, and then call `after` with the number of replies that had been received before. */
  | { after(before: number): Promise<void> };

/** The faults of a run: a plan that the seed makes, and what is broken now. */
export class Faults {
  readonly #stage: Stage;
  readonly #random: Random;
  readonly #plan: Planned[] = [];
  /** Those that wait for a command. */
  readonly #armed: Armed[] = [];
  /** How often each kind of command has come. */
  readonly #counts = new Map<string, number>();
  /** What ends, and when (elapsed ms). */
  readonly #ends: { readonly at: number; readonly end: () => Promise<void> | void }[] = [];
  #fallBacks: FallBack[] = [];
  /** How many faults the plan had. */
  readonly planCount: number;
  #isCalm = false;

  constructor(stage: Stage, world: World, random: Random, kept?: readonly number[]) {
    this.#stage = stage;
    this.#random = random;
    const { faults = [], events = 500 } = world;
    const count = faults.length === 0 ? 0 : random.pick(COUNTS);
    const plan = Array.from({ length: count }, () => ({
      kind: random.pick(faults),
      step: random.int(events),
    }));
    this.planCount = count;
    this.#plan = plan
      .filter((_, i) => kept === undefined || kept.includes(i))
      .toSorted((a, b) => a.step - b.step);
  }

  /** When something under way ends; Infinity if nothing is. */
  get nextAt(): number {
    const { elapsed } = this.#stage;
    const moments = this.#fallBacks.map(({ at }) => at).filter((at) => at > elapsed);
    return this.#ends.reduce((next, { at }) => Math.min(next, at), Math.min(Infinity, ...moments));
  }

  /** A fault that the world wants now. */
  request(fault: FaultRequest): void {
    this.#plan.unshift({ ...fault, step: 0 });
  }

  /** Ends what is under way, and begins nothing more. */
  calm(): void {
    const stage = this.#stage;
    this.#isCalm = true;
    this.#plan.length = 0;
    this.#armed.length = 0;
    this.#fallBacks = [];
    for (const connection of stage.connections) {
      connection.heldUntil = 0;
      connection.lag = 0;
      connection.rate = Infinity;
      connection.missCount = 0;
    }
    for (const { owner } of stage.processes) owner.stalledUntil = 0;
  }

  /** Does what has become due. */
  async apply(): Promise<void> {
    const stage = this.#stage;
    for (const due of this.#ends.filter(({ at }) => this.#isCalm || at <= stage.elapsed)) {
      this.#ends.splice(this.#ends.indexOf(due), 1);
      await due.end();
    }
    for (const due of this.#fallBacks.filter((one) => this.#isDue(one))) {
      this.#fallBacks.splice(this.#fallBacks.indexOf(due), 1);
      await this.#fallBack(due);
    }
    while ((this.#plan[0]?.step ?? Infinity) <= stage.step) {
      await this.#begin(this.#plan.shift() as Planned);
    }
  }

  /** Ends everything, after the run. */
  async end(): Promise<void> {
    for (const { end } of this.#ends.splice(0)) await end();
  }

  /** Decides whether a fault hits the command that this connection has sent. */
  async meet(connection: Connection): Promise<Fate> {
    const [first] = connection.sent;
    if (first === undefined || first === "end") return "pass";
    const command = String(first.words[0]).toUpperCase();
    if (DULL.has(command)) return "pass";
    const kind = connection.server.kindOf(first.words);
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    const hit = this.#armed.find(
      (fault) =>
        count <= fault.most &&
        kind.startsWith(fault.command ?? "") &&
        this.#concerns(fault, connection) &&
        fault.skip-- <= 0,
    );
    if (hit === undefined) return "pass";
    this.#armed.splice(this.#armed.indexOf(hit), 1);
    const { isBefore } = hit;
    if (hit.kind === "crash") {
      const process = this.#processOf(connection) as StagedProcess;
      if (!isBefore) return { after: async () => this.#crash(process) };
      // What the process had sent may be on its way, or may not.
      this.#crash(process);
      return "stop";
    }
    const how = isBefore ? "before" : "after";
    this.#tell("cut", { connection: connection.label, how, command });
    if (isBefore) {
      await this.#lose(connection);
      return "stop";
    }
    return {
      after: async (before) => {
        connection.received.length = Math.min(connection.received.length, before);
        await this.#lose(connection);
      },
    };
  }

  #crash(process: StagedProcess): void {
    const connections = this.#stage.connections.filter(({ owner }) => owner === process.owner);
    process.crash();
    for (const { sent } of connections) {
      const arrived = this.#random.int(sent.length);
      sent.splice(arrived, sent.length - 1 - arrived);
    }
  }

  #concerns(fault: Planned, connection: Connection): boolean {
    if (fault.process !== undefined) {
      return (fault.process as StagedProcess).owner === connection.owner;
    }
    return fault.kind === "cut" || this.#processOf(connection)?.mayCrash === true;
  }

  async #begin(fault: Planned): Promise<void> {
    const stage = this.#stage;
    const random = this.#random;
    const { duration } = fault;
    const server = stage.servers[fault.server ?? random.int(stage.servers.length)];
    if (server === undefined) return;
    switch (fault.kind) {
      case "crash":
      case "cut": {
        const most = fault.command === undefined ? random.pick(RARE) : Infinity;
        const skip = random.int(fault.command === undefined && most === Infinity ? 6 : 2);
        this.#armed.push({ ...fault, skip, most, isBefore: random.chance(0.5) });
        return;
      }
      case "stall": {
        const process = (fault.process ?? this.#pickProcess()) as StagedProcess | undefined;
        const length = duration ?? random.magnitude(50, 20_000);
        process?.stall(length);
        if (process !== undefined) this.#tell("stall", { process: process.name, duration: length });
        return;
      }
      case "clock-step": {
        // What is delayed comes later by a step backwards: a long one would only make the run long.
        const step = random.chance(0.5)
          ? random.magnitude(10, 600_000)
          : -random.magnitude(10, 30_000);
        server.offset += Math.round(duration ?? step);
        this.#tell("clock-step", { server: server.index, duration: Math.round(duration ?? step) });
        return;
      }
      case "script-flush": {
        server.forgetScripts();
        this.#tell("script-flush", { server: server.index });
        return;
      }
      case "rights": {
        const command = fault.command ?? random.pick(RIGHTS);
        await server.withdraw(command);
        const length = duration ?? random.magnitude(50, 5000);
        this.#tell("rights", { server: server.index, command, duration: length });
        this.#until(length, async () => {
          await server.giveBack(command);
          this.#tell("rights-again", { server: server.index, command });
        });
        return;
      }
      case "failover": {
        const [copy, since] = [await server.copy(), stage.elapsed];
        const step = stage.step + 1 + random.int(40);
        // Of two, the later one counts.
        this.#fallBacks = this.#fallBacks.filter(({ isRestore }) => isRestore);
        this.#fallBacks.push({ step, at: 0, server, copy, since, isRestore: false });
        return;
      }
      case RESTORE: {
        const [copy, since] = [await server.copy(), stage.elapsed];
        const at = since + (duration ?? random.between(1000, 30_000));
        this.#fallBacks.push({ step: 0, at, server, copy, since, isRestore: true });
        return;
      }
      default:
        await this.#beginAtConnection(fault, fault.kind);
    }
  }

  async #beginAtConnection(fault: Planned, kind: FaultKind): Promise<void> {
    const stage = this.#stage;
    const random = this.#random;
    const owner = (fault.process as StagedProcess | undefined)?.owner;
    const candidates = stage.connections.filter(
      (one) =>
        one.link !== undefined &&
        !one.isLost &&
        (owner ?? one.owner) === one.owner &&
        (kind !== "deaf" || one.isSubscribed) &&
        (kind !== LATE_REPLIES || one.label.includes(".background#")),
    );
    if (candidates.length === 0) return;
    const connection = random.pick(candidates);
    const about = { connection: connection.label };
    if (kind === "delay") {
      const duration = fault.duration ?? random.magnitude(5, 3000);
      connection.heldUntil = stage.elapsed + duration;
      this.#tell(kind, { ...about, duration });
    } else if (kind === LATE_REPLIES) {
      const [lag, duration] = [random.magnitude(300, 1900), random.magnitude(1000, 20_000)];
      connection.lag = lag;
      this.#tell(kind, { ...about, lag, duration });
      this.#until(duration, () => void (connection.lag = 0));
    } else if (kind === "trickle") {
      // A reply to anything is there within a minute: after that, a connection is given up.
      connection.rate = random.magnitude(50, 5000);
      const duration = fault.duration ?? random.magnitude(3000, 40_000);
      this.#tell(kind, { ...about, duration, rate: connection.rate });
      this.#until(duration, () => {
        connection.rate = Infinity;
      });
    } else if (kind === "deaf") {
      connection.missCount = random.between(1, 5);
      this.#tell(kind, { ...about, count: connection.missCount });
    } else if (kind === "silence") {
      connection.isSilent = true;
      const duration = fault.duration ?? random.magnitude(1000, 60_000);
      this.#tell(kind, { ...about, duration });
      this.#until(duration, async () => {
        connection.isSilent = false;
        await this.#lose(connection);
      });
    } else if (kind === "client-kill") {
      this.#tell(kind, about);
      await this.#lose(connection);
    }
  }

  #isDue({ step, at }: FallBack): boolean {
    return this.#stage.step >= step && this.#stage.elapsed >= at;
  }

  /** Falls back to a copy, as a failover does. */
  async #fallBack({ server, copy, since, isRestore }: FallBack): Promise<void> {
    const stage = this.#stage;
    const { index } = server;
    const remembering = stage.processes
      .filter(({ isAlive }) => isAlive)
      .filter(({ owner }) => stage.claims.isAhead(owner, copy.claims, LONG_SHOWN))
      .map(({ name }) => name);
    for (const connection of stage.connectionsTo(server)) {
      if (connection.link !== undefined) connection.lose("reset");
    }
    await server.settled();
    await server.restore(copy);
    server.runId = `${this.#random.uint32().toString(16).padStart(39, "f")}${index}`;
    const about = isRestore ? { isRestore, remembering } : {};
    this.#tell("failover", { server: index, since, ...about });
  }

  /** Ends a connection at Redis, and lets Redis notice. */
  async #lose(connection: Connection): Promise<void> {
    connection.lose(this.#random.chance(0.5) ? "closed" : "reset");
    await gather(connection.server, this.#stage);
  }

  #until(duration: number, end: () => Promise<void> | void): void {
    this.#ends.push({ at: this.#stage.elapsed + duration, end });
  }

  #pickProcess(): StagedProcess | undefined {
    const alive = this.#stage.processes.filter((process) => process.isAlive);
    return alive.length === 0 ? undefined : this.#random.pick(alive);
  }

  #processOf({ owner }: Connection): StagedProcess | undefined {
    return this.#stage.processes.find((process) => process.owner === owner && process.isAlive);
  }

  #tell(fault: string, about: Readonly<Record<string, unknown>>): void {
    this.#stage.record({ fault, ...about }, undefined);
  }
}

/** Milliseconds after which a process certainly remembers what it was shown: a failover may lose what is younger. */
const LONG_SHOWN = 6000;

/** How many faults a run has: mostly few, so that a failure can be understood. */
const COUNTS = [0, 1, 1, 1, 2, 2, 2, 3, 3, 5, 8];

/**
 * A fault that waits for a command prefers a rare one: it comes only to a command of whose kind there have been so few.
 * Most commands are offers, transfers and waits.
 */
const RARE = [Infinity, Infinity, 12, 4, 2];

/** Commands that are no move of a message. */
const DULL = new Set(["PING", "TIME", "INFO", "CLIENT", "HELLO"]);

/** Commands that may be refused for a while. */
const RIGHTS = (
  "publish subscribe evalsha eval set del unlink expire zadd zrem rpush lpush ltrim lrem blpop hset hdel " +
  "xadd xdel xack xclaim xreadgroup xgroup"
).split(" ");
