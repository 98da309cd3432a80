import { BUCKET_COUNT } from "../../queue/message/bucket.ts";
import { otherNameOf } from "../../queue/keys.ts";
import { MAX_PARTITIONS } from "../../queue/options.ts";
import { crc16, SLOT_COUNT } from "../../queue/slot.ts";

/**
 * Twelve equal parts of the slots, in the order in which partitions take them. After any number of partitions,
 * 3, 4 and 6 masters with equal ranges of slots have equally many, give or take one.
 */
const CELLS = [0, 6, 9, 3, 4, 10, 1, 7, 8, 2, 5, 11];

/** How many slots a partition may be in: a sixteenth of a cell, rounded down. */
const ARC = 85;

/** The names of one queue's partitions, each computed on first use. */
export class PartitionNames {
  readonly #queue: string;
  readonly #names: string[] = [];

  constructor(queue: string) {
    this.#queue = queue;
  }

  /** See {@link partitionName}. */
  at(partition: number): string {
    return (this.#names[partition] ??= partitionName(this.#queue, partition));
  }
}

/**
 * The name that a partition of `queue` has as a queue: `{orders/3/72}` is partition 3 of `orders`.
 *
 * The last number is the smallest that hashes the name into the partition's arc of Redis Cluster slots. Finding it
 * takes about 160 tries, so {@link PartitionNames} keeps the result. The name depends on nothing else and never
 * changes.
 *
 * The braces enclose the whole name. In `queue`, `{` is written `%7B`, `}` is written `%7D`, and `%` is written `%25`,
 * so a hash tag in the queue's own name has no effect, and no two queues share a partition name.
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

/** The queue and the number of the partition that has this name; undefined if it is not the name of a partition. */
export function partitionNamed(
  name: string,
): { readonly queue: string; readonly partition: number } | undefined {
  const [, encoded, digits] = /^\{([^{}]+)\/(\d{1,3})\/\d+\}$/s.exec(name) ?? [];
  const partition = Number(digits);
  if (encoded === undefined || !(partition < MAX_PARTITIONS)) return undefined;
  const queue = encoded.replaceAll(/%(?:25|7B|7D)/g, decodeURIComponent);
  return partitionName(queue, partition) === name ? { queue, partition } : undefined;
}

/**
 * Checks that a name is not that of a partition, nor differs from one in braces alone.
 *
 * @throws {TypeError} naming the partition's queue.
 */
export function checkNoPartition(name: string): void {
  const whole = partitionNamed(name) ?? partitionNamed(otherNameOf(name) ?? "");
  if (whole === undefined) return;
  throw new TypeError(
    `queue name must not be that of a partition, got ${JSON.stringify(name)}, which is partition ${whole.partition} of queue ${JSON.stringify(whole.queue)}: open that queue`,
  );
}

/** The first of the slots that a partition may be in. */
function arcOf(partition: number): number {
  const cell = CELLS[partition % CELLS.length]!;
  // 0, 1/2, 1/4, 3/4, 1/8, ...: each round through the cells falls into the widest gaps left by earlier rounds.
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
 * The partition of each bucket, for a given number of partitions. Callers must not write to the table.
 *
 * Partitions have equally many buckets, give or take one. The table for one partition more differs only in the buckets
 * of the new partition, which takes its share evenly from the others. Tables never change: messages are stored by them.
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

/** The longest share; the first of several. */
function largest(shares: readonly number[][]): number[] {
  return shares.reduce((longest, share) => (share.length > longest.length ? share : longest));
}

function checkNumber(name: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new RangeError(`${name} must be a whole number from ${min} to ${max}, got ${value}`);
}
