import type { Note, SimProcess } from "../sim.ts";
import type { Claims } from "./claims.ts";
import type { VirtualClock } from "./clock.ts";
import type { Connection } from "./connection.ts";
import type { Owner } from "./owner.ts";
import type { SimServer } from "./server.ts";

/** A run, as far as its parts see it. */
export interface Stage {
  readonly clock: VirtualClock;
  readonly servers: readonly SimServer[];
  readonly processes: readonly StagedProcess[];
  readonly connections: readonly Connection[];
  readonly claims: Claims;
  /** How many events have been released. */
  readonly step: number;
  /** Milliseconds since the run began. */
  readonly elapsed: number;
  /** The clock of a server (epoch ms, with fractions). */
  serverTime(server: SimServer): number;
  /** A connection by the id that clients see. */
  byId(id: number): Connection | undefined;
  /** Everybody's connections to a server, which have to be read after each command. */
  connectionsTo(server: SimServer): readonly Connection[];
  /** Begins a connection of a process. */
  connect(owner: Owner, server: SimServer): Connection;
  /** Adds to the history. */
  record(event: Note, process: string | undefined): void;
  /** Adds bytes to the hash of the trace, which its text does not show in full. */
  mix(bytes: Buffer): void;
  /** Adds to the trace alone. */
  tell(text: string): void;
}

export interface StagedProcess extends SimProcess {
  readonly owner: Owner;
  readonly mayCrash: boolean;
}
