import type { Redis } from "ioredis";
import type { Delayline, DelaylineOptions } from "../../src/index.ts";
import type { Random } from "./random.ts";

/**
 * What a simulated run gives to a world: processes, actors, virtual time, and a history.
 *
 * Nothing happens at once. Every command, reply, published message and timer is held by the machine, which releases one
 * after another as the seed decides. Between two of them everything stands still. So a run depends on its seed alone, as
 * long as the world takes its time from {@link now}, waits by {@link sleep}, and draws from {@link random}.
 */
export interface Sim {
  readonly seed: number;
  /** The world's own random numbers. What the machine draws does not change them. */
  readonly random: Random;
  /**
   * Makes a client that stands for a process of its own. `options` are those of `new Delayline`, without `redis`.
   *
   * Use its line inside an actor of that process ({@link go}) or in {@link SimProcess.run}: otherwise what the call
   * leaves behind, such as timers, survives a crash.
   */
  newProcess(name: string, options?: ProcessOptions): SimProcess;
  /**
   * Runs an actor: its awaits interleave with everything else. It begins as an event of its own. An actor of a process
   * that crashes never continues. What an actor throws is a violation.
   *
   * The promise resolves when the actor has ended: returned, failed, or crashed.
   */
  go(name: string, process: SimProcess | undefined, act: () => Promise<void>): Promise<void>;
  /** The virtual instant on the clock of a server (epoch ms, to the microsecond). Steps of its clock count. */
  now(server?: number): number;
  /** Milliseconds since the run began. No fault changes this clock. */
  readonly elapsed: number;
  /** Waits in virtual time. Never ends in a process that has crashed. */
  sleep(duration: number): Promise<void>;
  /** Adds to the history. A process that has crashed notes nothing more. */
  note(event: Note): void;
  /** What was noted, with the faults, in order. */
  readonly history: readonly Noted[];
  /**
   * Whether to do the next operation: always, unless a failing run is being shrunk. Ask before each operation that a
   * workload could do without.
   */
  wants(): boolean;
  /** Runs `look` while everything else is held, and waits for it in real time: for questions to Redis during a run. */
  outside<Result>(look: () => Promise<Result>): Promise<Result>;
  /** Injects a fault now, whatever the seed says. */
  fault(fault: FaultRequest): void;
  /** Ends the faults under way (stalls, silence, withdrawn rights), and injects no more. */
  calm(): void;
  /** A client that is never held: before the run, inside {@link outside}, and in `check`. One for each server. */
  readonly controls: readonly Redis[];
  readonly control: Redis;
}

/** A process of its own, as far as the code under test can tell: a client, its connections, its timers. */
export interface SimProcess {
  readonly name: string;
  readonly line: Delayline;
  readonly isAlive: boolean;
  /** Resolves if the process crashes. */
  readonly crashed: Promise<void>;
  /** Runs `act` in this process. */
  run<Result>(act: () => Result): Result;
  /**
   * Nothing of it runs or is sent any more. Redis notices later; if the process `vanishes`, with its host, never: then
   * its connections stay open.
   */
  crash(how?: { readonly vanishes?: boolean }): void;
  /** Its event loop stands still for so many milliseconds. What it has sent is on its way. */
  stall(duration: number): void;
}

export interface ProcessOptions extends Omit<DelaylineOptions, "redis"> {
  /** Whether the seed may crash it. Defaults to true. */
  readonly mayCrash?: boolean;
  /** Options of ioredis. */
  readonly redis?: Readonly<Record<string, unknown>>;
}

/** An entry of the history. Only values that JSON can hold. */
export type Note = Readonly<Record<string, unknown>>;

export interface Noted {
  /** The milliseconds that had elapsed. */
  readonly at: number;
  /** How many events had been released. */
  readonly step: number;
  /** The process that noted it. */
  readonly process: string | undefined;
  /** For a fault: `{ fault: FaultKind, ... }`. */
  readonly event: Note;
}

/** What a seed may break, if the world allows it. */
export const FAULT_KINDS = [
  /** A process ends at a command: before Redis gets it, or after it was carried out. */
  "crash",
  /** A connection is cut at a command: before Redis gets it, or after it was carried out, so that its reply is lost. */
  "cut",
  /** A connection goes silent: it stays open, and nothing passes in either direction. */
  "silence",
  /** What a connection carries takes long, from milliseconds to seconds. */
  "delay",
  /** The replies on a connection come bit by bit for a while, so that one may take many seconds. */
  "trickle",
  /** A connection misses the next published messages. */
  "deaf",
  /** An event loop stands still, perhaps beyond a lease. */
  "stall",
  /** The clock of a server is set, forwards or backwards. */
  "clock-step",
  /** A server forgets all scripts. */
  "script-flush",
  /** A server closes a connection. */
  "client-kill",
  /** A server falls back to an earlier state, as after a failover to a replica that lagged. All connections end. */
  "failover",
  /** For a while, a server refuses a command. */
  "rights",
] as const;

/**
 * The replies on a connection that renews leases come late, perhaps by as long as a lease, while their process lives on.
 * For worlds with leases.
 */
export const LATE_REPLIES = "late-replies";

/**
 * A server falls back to a copy that is older than what a failover may lose, as when a backup is restored. Its history is
 * that of a failover which `isRestore`. For worlds that ask for it.
 */
export const RESTORE = "restore";

export type FaultKind = (typeof FAULT_KINDS)[number] | typeof LATE_REPLIES | typeof RESTORE;

/** A fault, with what is not left to the seed. */
export interface FaultRequest {
  readonly kind: FaultKind;
  readonly process?: SimProcess;
  readonly server?: number;
  /** Milliseconds: of a stall, a delay, a trickle, a clock's step, withdrawn rights; of a restore, the age of the copy. */
  readonly duration?: number;
  /** Of `rights`: the command. Of a cut or a crash: how the name of the command or script begins at which it comes. */
  readonly command?: string;
}

/** A workload, and what has to be true of it. */
export interface World {
  readonly name: string;
  /** What a seed may break. Defaults to nothing. */
  readonly faults?: readonly FaultKind[];
  /** How many servers it needs. Defaults to 1. */
  readonly servers?: number;
  /** Milliseconds by which the clocks of further servers differ from that of the first at most. Defaults to 3 s. */
  readonly skew?: number;
  /** About how many events a run has: the faults are spread over them. Defaults to 500. */
  readonly events?: number;
  /** It has a run in every so many rounds over the worlds, since its runs are long, or find less. Defaults to 1. */
  readonly every?: number;
  /** Virtual milliseconds after which the run counts as hung. Defaults to 10 minutes. */
  readonly limit?: number;
  /**
   * Does the work, calls {@link Sim.calm}, waits until all is done, and closes the clients. Runs as an actor without a
   * process. What it throws is a violation.
   */
  run(sim: Sim): Promise<void>;
  /** Returns what is wrong, one line each. Runs after all clients have ended. */
  check(sim: Sim): Promise<readonly string[]>;
}
