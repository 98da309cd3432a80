/*
 * What the matrix consists of: attack x queue x topology, on each server. Not every attack exists everywhere.
 */

export const QUEUES = ["plain", "reliable", "partitioned", "exclusive"] as const;
export type Queue = (typeof QUEUES)[number];

export const TOPOLOGIES = ["standalone", "Sentinel", "Cluster"] as const;
export type Topology = (typeof TOPOLOGIES)[number];

/** Where an attack makes sense. By default everywhere, for all queues. */
interface Reach {
  readonly on?: readonly Topology[];
  readonly against?: readonly Queue[];
}

const STANDALONE = { on: ["standalone"] } as const;
const REPLICATED = { on: ["Sentinel", "Cluster"] } as const;

/** Every attack, by the name that `--only` takes, in the order of the page. */
const REACHES = {
  "workers-killed": {},
  "producers-killed": STANDALONE,
  "workers-stalled": { ...STANDALONE, against: ["reliable", "partitioned", "exclusive"] },
  "connections-cut": {},
  "replies-lost": {},
  "link-slow": { on: ["standalone", "Cluster"] },
  "scripts-flushed": STANDALONE,
  "clocks-wrong": STANDALONE,
  "partitions-changed": { on: ["standalone", "Cluster"], against: ["partitioned", "exclusive"] },
  "slots-moved": { on: ["Cluster"] },
  "server-stalled": STANDALONE,
  "server-killed-always": STANDALONE,
  "server-killed-everysec": STANDALONE,
  "power-lost-everysec": STANDALONE,
  "server-killed-unsaved": STANDALONE,
  "master-replaced": REPLICATED,
  "master-killed": REPLICATED,
  "master-killed-cut-off": REPLICATED,
} as const satisfies Record<string, Reach>;

export type AttackName = keyof typeof REACHES;

export const ATTACKS = Object.keys(REACHES) as AttackName[];

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

/** The name of a cell: `workers-killed/plain/standalone`. */
export function nameOf({ attack, queue, topology }: Cell): string {
  return `${attack}/${queue}/${topology}`;
}
