import { BUCKET_COUNT } from "../../queue/message/bucket.ts";
import { MAX_PARTITIONS } from "../../queue/options.ts";
import { crc16, SLOT_COUNT } from "./slot.ts";

/**
 * Twelve equal parts of the slots, in the order in which partitions are put into them. However early the
 * order is broken off, 3, 4 and 6 masters with equal ranges of slots get equally many, give or take one.
 */
const CELLS = [0, 6, 9, 3, 4, 10, 1, 7, 8, 2, 5, 11];

/** How many slots a partition may choose from: the sixteenth part of a cell, rounded down. */
const ARC = 85;

/** The names of one queue's partitions. Each is computed when it is first asked for. */
export class PartitionNames {
  readonly #queue: string;
  readonly #names: string[] = [];

  constructor(queue: string) {
    this.#queue = queue;
  }

  /** The name of the queue that is this partition. */
  at(partition: number): string {
    return (this.#names[partition] ??= partitionName(this.#queue, partition));
  }
}

/**
 * The name of the queue that is a partition of `queue`: `{orders/3/72}` is partition 3 of `orders`.
 *
 * The last number is the smallest that brings the partition to its place among the slots of Redis Cluster.
 * The name depends on nothing else, so it can never change. To find that number takes about 160 tries,
 * see {@link PartitionNames}.
 *
 * The braces hold the whole name, whatever `queue` is: in it `{` is written `%7B`, `}` is written `%7D`,
 * and `%` is written `%25`. So a hash tag of its own no longer counts, and no two queues share a name.
 */
export function partitionName(queue: string, partition: number): string {
  checkNumber("partition", partition, 0, MAX_PARTITIONS - 1);
  const beginning = `${queue.replaceAll(/[%{}]/g, encodeURIComponent)}/${partition}/`;
  const begun = crc16(beginning);
  const from = arcOf(partition);
  for (let k = 0; ; k++) {
    const slot = crc16(String(k), begun) % SLOT_COUNT;
    if (slot >= from && slot < from + ARC) return `{${beginning}${k}}`;
  }
}

/** Where the slots begin that a partition may choose from. */
function arcOf(partition: number): number {
  const cell = CELLS[partition % CELLS.length]!;
  // 0, 1/2, 1/4, 3/4, 1/8, ...: each round through the cells falls into the widest gaps of the earlier ones.
  let within = 0;
  let weight = 1 / 2;
  for (let round = Math.floor(partition / CELLS.length); round > 0; round >>= 1) {
    if (round & 1) within += weight;
    weight /= 2;
  }
  return (SLOT_COUNT * (cell + within)) / CELLS.length;
}

const tables = new Map<number, Uint8Array>();

/**
 * Which partition each bucket belongs to, if there are so many partitions. Not to be written to.
 *
 * Partitions have equally many buckets, give or take one. The table of one partition more is the same
 * but for the buckets of the new one, which takes its share evenly from the others. It can never change.
 */
export function tableOf(partitions: number): Uint8Array {
  let table = tables.get(partitions);
  if (table === undefined) {
    table = makeTable(partitions);
    tables.set(partitions, table);
  }
  return table;
}

function makeTable(partitions: number): Uint8Array {
  checkNumber("number of partitions", partitions, 1, MAX_PARTITIONS);
  const shares = [Array.from({ length: BUCKET_COUNT }, (_, bucket) => bucket)];
  while (shares.length < partitions) {
    const size = Math.floor(BUCKET_COUNT / (shares.length + 1));
    shares.push(Array.from({ length: size }, () => largest(shares).pop()!));
  }
  const table = new Uint8Array(BUCKET_COUNT);
  for (const [partition, buckets] of shares.entries()) {
    for (const bucket of buckets) table[bucket] = partition;
  }
  return table;
}

/** The first of the longest. */
function largest(shares: readonly number[][]): number[] {
  return shares.reduce((longest, share) => (share.length > longest.length ? share : longest));
}

function checkNumber(what: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new RangeError(`${what} must be a whole number from ${min} to ${max}, got ${value}`);
}
