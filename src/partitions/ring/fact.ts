import { MAX_PARTITIONS } from "../../queue/options.ts";
import { tableOf } from "./ring.ts";

/**
 * What is known of a queue's partitions. It is written in Redis as `epoch:to:from:state:servers`, beside
 * each partition; what is written beside partition 0 is authoritative.
 */
export interface Fact {
  /** Grows by one with each change of the fact. The first is 1. */
  readonly epoch: number;
  /** How many partitions there are, or will be when all messages have been brought over. */
  readonly to: number;
  /** How many there were; {@link FROM_ORDINARY} while the ordinary queue is taken in. `to` if stable. */
  readonly from: number;
  /**
   * Whether messages are being brought over (`moving`), and nothing becomes ready meanwhile (`holding`,
   * for queues that are consumed exclusively).
   */
  readonly state: "stable" | "moving" | "holding";
  /** How many servers the partitions are shared out to: partition p is on the server p mod `servers`. */
  readonly servers: number;
}

/** `from` of a fact while the ordinary queue of the same name is taken into partitions. */
export const FROM_ORDINARY = 0;

/** Stands for the ordinary queue where the number of a partition is expected. */
export const ORDINARY = -1;

/** So many changes of one queue are enough for ever. */
export const MAX_EPOCH = 2 ** 21 - 1;

const FACT = /^([1-9]\d*):([1-9]\d*):(0|[1-9]\d*):(stable|moving|holding):([1-9]\d*)$/;

/** Reads a fact; undefined if it is not one that {@link formatFact} can have written. */
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

/** The fact as it is written in Redis. */
export function formatFact({ epoch, to, from, state, servers }: Fact): string {
  return `${epoch}:${to}:${from}:${state}:${servers}`;
}

/** Whether fact `a` has replaced fact `b`. */
export function isLater(a: Fact, b: Fact): boolean {
  return a.epoch > b.epoch;
}

/** How many partitions may hold messages. */
export function partitionsOf(fact: Fact): number {
  return Math.max(fact.to, fact.from);
}

/** The partition that the messages of a bucket belong to. */
export function destinationOf(fact: Fact, bucket: number): number {
  return tableOf(fact.to)[bucket]!;
}

/**
 * The partition that the messages of a bucket belonged to before, {@link ORDINARY} for the ordinary queue;
 * undefined if nothing is being brought over. It can be the one that they belong to now.
 */
export function sourceOf(fact: Fact, bucket: number): number | undefined {
  if (fact.state === "stable") return undefined;
  return fact.from === FROM_ORDINARY ? ORDINARY : tableOf(fact.from)[bucket]!;
}

/** Whether messages of a bucket may still be where they belonged before, and have to be brought over. */
export function isMoved(fact: Fact, bucket: number): boolean {
  const source = sourceOf(fact, bucket);
  return source !== undefined && source !== destinationOf(fact, bucket);
}
