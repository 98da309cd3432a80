import { type Series, SERIES } from "./series.ts";

/*
 * What the matrix consists of: attack x queue x topology x server. Not every attack exists everywhere, and not every cell
 * runs on every server.
 */

/** `scheduled` and `conditional` are reliable queues: all messages are ticks of schedules, or have an `onlyIf`. */
export const QUEUES = [
  "plain",
  "reliable",
  "partitioned",
  "exclusive",
  "scheduled",
  "conditional",
] as const;
export type Queue = (typeof QUEUES)[number];

export const TOPOLOGIES = ["standalone", "Sentinel", "Cluster"] as const;
export type Topology = (typeof TOPOLOGIES)[number];

/** Where an attack makes sense. By default everywhere, for all queues, on all servers. */
interface Reach {
  readonly on?: readonly Topology[];
  readonly against?: readonly Queue[];
  readonly servers?: readonly Series[];
  /** Whether it depends more on the server than on the library. */
  readonly isOfServer?: boolean;
}

const STANDALONE = { on: ["standalone"] } as const;
const REPLICATED = { on: ["Sentinel", "Cluster"], isOfServer: true } as const;
const KEPT = { ...STANDALONE, isOfServer: true } as const;

/** Servers between the oldest and the newest. On these only the attacks run that depend on the server. */
const BETWEEN: ReadonlySet<Series> = new Set(["Redis 8.0", "Redis 8.2", "Valkey 8"]);

/** Kinds of queue that run on the oldest and the newest server alone, with attacks that move slots on all. */
const ON_FEW: ReadonlySet<Queue> = new Set(["scheduled", "conditional"]);

/** Every attack, by the name that `--only` takes, in the order of the page. */
const REACHES = {
  "workers-killed": {},
  "producers-killed": STANDALONE,
  "workers-stalled": { ...STANDALONE, against: QUEUES.filter((queue) => queue !== "plain") },
  "connections-cut": {},
  "replies-lost": {},
  "link-slow": { on: ["standalone", "Cluster"] },
  "scripts-flushed": STANDALONE,
  "clocks-wrong": STANDALONE,
  "partitions-changed": { on: ["standalone", "Cluster"], against: ["partitioned", "exclusive"] },
  "slots-moved": { on: ["Cluster"], isOfServer: true },
  "slots-moved-at-once": { on: ["Cluster"], servers: ["Valkey 9"], isOfServer: true },
  "server-stalled": STANDALONE,
  "server-killed-always": KEPT,
  "server-killed-everysec": KEPT,
  "power-lost-everysec": KEPT,
  // Schedules are gone with all other data, until a process starts that declares them.
  "server-killed-unsaved": { ...KEPT, against: QUEUES.filter((queue) => queue !== "scheduled") },
  "master-replaced": REPLICATED,
  "master-killed": REPLICATED,
  "master-killed-cut-off": REPLICATED,
} as const satisfies Record<string, Reach>;

export type AttackName = keyof typeof REACHES;

const ATTACKS = Object.keys(REACHES) as AttackName[];

/** One run of the matrix, on some server. */
export interface Cell {
  readonly attack: AttackName;
  readonly queue: Queue;
  readonly topology: Topology;
}

/** All cells, those that can share their servers together. */
export function allCells(): Cell[] {
  return TOPOLOGIES.flatMap((topology) =>
    ATTACKS.flatMap((attack) => {
      const { on = TOPOLOGIES, against = QUEUES }: Reach = REACHES[attack];
      const queues = on.includes(topology) ? against : [];
      return queues.map((queue) => ({ attack, queue, topology }));
    }),
  );
}

/** Whether a cell runs on the servers of a series. */
export function isOn(series: Series, { attack, queue }: Cell): boolean {
  const { servers = SERIES, isOfServer = false }: Reach = REACHES[attack];
  if (!servers.includes(series)) return false;
  if (!BETWEEN.has(series)) return true;
  return isOfServer && (!ON_FEW.has(queue) || attack === "slots-moved");
}

/** The name of a cell: `workers-killed/plain/standalone`. */
export function nameOf({ attack, queue, topology }: Cell): string {
  return `${attack}/${queue}/${topology}`;
}
