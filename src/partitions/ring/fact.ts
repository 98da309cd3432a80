import { MAX_PARTITIONS } from "../../queue/options.ts";
import { tableOf } from "./ring.ts";

/**
 * How many partitions a queue has, and whether that number is being changed. Redis holds it as
 * `epoch:to:from:state:servers` beside each partition; the copy beside partition 0 is authoritative.
 */
export interface Fact {
  /** Grows by one with each change of the fact. The first is 1. */
  readonly epoch: number;
  /** How many partitions there are, or will be once all messages have been migrated. */
  readonly to: number;
  /** How many there were before; {@link FROM_ORDINARY} while the ordinary queue is a part. `to` if stable. */
  readonly from: number;
  /**
   * - `stable`: every message is where it belongs.
   * - `moving`: messages are being migrated.
   * - `holding`: the same in a queue that is consumed exclusively; no message becomes ready meanwhile.
   */
  readonly state: "stable" | "moving" | "holding";
  /** How many servers the partitions are spread over: partition p is on server p mod `servers`. */
  readonly servers: number;
}

/** `from` of a fact while the ordinary queue of the same name is a part. */
export const FROM_ORDINARY = 0;

/** Stands for the ordinary queue where the number of a partition is expected. */
export const ORDINARY = -1;

/** The greatest epoch that counts as one. No queue is changed two million times. */
export const MAX_EPOCH = 2 ** 21 - 1;

const FACT = /^([1-9]\d*):([1-9]\d*):(0|[1-9]\d*):(stable|moving|holding):([1-9]\d*)$/;

/** Reads a fact; undefined for a text that {@link formatFact} cannot have written. */
export function parseFact(text: string): Fact | undefined {
  const [, epoch, to, from, state, servers] = FACT.exec(text) ?? [];
  if (state === undefined) return undefined;
  const fact: Fact = {
    epoch: Number(epoch),
    to: Number(to),
    from: Number(from),
    state: state as Fact["state"],
    servers: Number(servers),
  };
  const isLegal =
    fact.epoch <= MAX_EPOCH &&
    Math.max(fact.to, fact.from, fact.servers) <= MAX_PARTITIONS &&
    (fact.state === "stable") === (fact.from === fact.to);
  return isLegal ? fact : undefined;
}

/** Writes a fact as Redis holds it. */
export function formatFact({ epoch, to, from, state, servers }: Fact): string {
  return `${epoch}:${to}:${from}:${state}:${servers}`;
}

/** Whether fact `a` replaces fact `b`. */
export function isLater(a: Fact, b: Fact): boolean {
  return a.epoch > b.epoch;
}

/** How many partitions may hold messages, without the ordinary queue. */
export function partitionsOf(fact: Fact): number {
  return Math.max(fact.to, fact.from);
}

/** Whether the ordinary queue is a part, perhaps for long: only `setPartitions` knows when its processes are gone. */
export function isWithOrdinary({ from, state }: Fact): boolean {
  return from === FROM_ORDINARY && state === "moving";
}

/** The partition that the messages of a bucket belong to. */
export function destinationOf(fact: Fact, bucket: number): number {
  return tableOf(fact.to)[bucket]!;
}

/**
 * The partition that the messages of a bucket belonged to before the change under way, {@link ORDINARY} for the
 * ordinary queue; undefined if the fact is stable. It may be the partition that they belong to now.
 */
export function sourceOf(fact: Fact, bucket: number): number | undefined {
  if (fact.state === "stable") return undefined;
  return fact.from === FROM_ORDINARY ? ORDINARY : tableOf(fact.from)[bucket]!;
}

/** Whether messages of a bucket may still be where they belonged before, and have to be migrated. */
export function isMoved(fact: Fact, bucket: number): boolean {
  const source = sourceOf(fact, bucket);
  return source !== undefined && source !== destinationOf(fact, bucket);
}
