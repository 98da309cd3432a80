import type { Batch, BatchRow } from "../../src/lua/fragments/journal.ts";
import { dropBatch } from "../../src/lua/partitions/pull-out.ts";
import { pushIn } from "../../src/lua/partitions/push-in.ts";
import { run } from "../../src/lua/script.ts";
import type { Bytes, Moves } from "./moves.ts";

/** A table in which all buckets belong to one partition. */
export function allTo(partition: number): Buffer {
  return Buffer.alloc(1024, partition);
}

/** A row of a batch, as text. */
export interface Row {
  readonly to: number;
  readonly kind: string;
  readonly score: string;
  readonly name: Bytes;
  readonly value: Bytes;
}

function asRow({ to, kind, score, name, value }: BatchRow): Row {
  return { to, kind, score, name: name.toString("latin1"), value: value.toString("latin1") };
}

/** The rows of a batch. */
export function rowsOf({ rows }: Batch): Row[] {
  return rows.map(asRow);
}

/** Pushes the rows of a batch from partition 0 that go to partition `to`. */
export async function push({ redis, keys }: Moves, batch: Batch, to = 1): Promise<boolean> {
  const rows = batch.rows.filter((row) => row.to === to);
  const { number } = batch;
  return await run(redis, pushIn, keys, { channel: keys.channel, source: 0, number }, rows);
}

export async function drop({ redis, keys }: Moves, { number }: Batch): Promise<boolean> {
  return await run(redis, dropBatch, keys, { number });
}
