import { MAX_PARTITIONS } from "../../queue/options.ts";
import { tableOf } from "./ring.ts";

/**
 * How many partitions a queue has, and whether that number is being changed. Redis holds it as
 * `epoch:to:from:state:servers` beside each partition, followed by `:` and {@link Scattered} if that is set; the copy
 * beside partition 0 is authoritative. A partition that has nothing left to migrate has `:done` behind it.
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
   * - `holding`: the same in a queue that is consumed exclusively; no message becomes ready during it.
   */
  readonly state: "stable" | "moving" | "holding";
  /** How many servers the partitions are spread over: partition p is on server p mod `servers`. */
  readonly servers: number;
  /**
   * Set while messages are gathered after Redis went back to an earlier fact: a message may be in any of the
   * {@link partitionsOf} partitions, whatever its bucket is. `from` then only counts them.
   */
  readonly scattered?: Scattered | undefined;
}

/** Where messages may be: in any partition, or `everywhere`, in the ordinary queue as well. */
export type Scattered = "any" | "everywhere";

/** `from` of a fact while the ordinary queue of the same name is a part. */
export const FROM_ORDINARY = 0;

/** Stands for the ordinary queue where the number of a partition is expected. */
export const ORDINARY = -1;

/** The greatest epoch that counts as one. No queue is changed two million times. */
export const MAX_EPOCH = 2 ** 21 - 1;

const FACT =
  /^([1-9]\d*):([1-9]\d*):(0|[1-9]\d*):(stable|moving|holding):([1-9]\d*)(?::(any|everywhere))?(:done)?$/;

/** Reads a fact, done or not; undefined for a text that {@link formatFact} cannot have written. */
export function parseFact(text: string): Fact | undefined {
  const [, epoch, to, from, state, servers, scattered, done] = FACT.exec(text) ?? [];
  if (state === undefined) return undefined;
  const fact: Fact = {
    epoch: Number(epoch),
    to: Number(to),
    from: Number(from),
    state: state as Fact["state"],
    servers: Number(servers),
    ...(scattered === undefined ? {} : { scattered: scattered as Scattered }),
  };
  const isStable = fact.state === "stable";
  const isLegal =
    fact.epoch <= MAX_EPOCH &&
    Math.max(fact.to, fact.from, fact.servers) <= MAX_PARTITIONS &&
    (scattered === undefined ? isStable === (fact.from === fact.to) : !isStable && fact.from > 0) &&
    !(isStable && done !== undefined);
  return isLegal ? fact : undefined;
}

/** Writes a fact as Redis holds it. */
export function formatFact({ epoch, to, from, state, servers, scattered }: Fact): string {
  return `${epoch}:${to}:${from}:${state}:${servers}${scattered === undefined ? "" : `:${scattered}`}`;
}

/** Writes a fact as a partition holds it that has nothing left to migrate. */
export function formatDone(fact: Fact): string {
  return `${formatFact(fact)}:done`;
}

/** Whether fact `a` replaces fact `b`. */
export function isLater(a: Fact, b: Fact): boolean {
  return a.epoch > b.epoch;
}

/** How many partitions may hold messages, without the ordinary queue. */
export function partitionsOf(fact: Fact): number {
  return Math.max(fact.to, fact.from);
}

/** Whether the ordinary queue is a part. */
export function hasOrdinary({ from, scattered }: Fact): boolean {
  return from === FROM_ORDINARY || scattered === "everywhere";
}

/** Whether the ordinary queue is a part, perhaps for long: only `setPartitions` knows when its processes are gone. */
export function isWithOrdinary({ from, state }: Fact): boolean {
  return from === FROM_ORDINARY && state === "moving";
}

/** The partitions that may hold messages according to a fact, {@link ORDINARY} first if it is one of them. */
export function activeOf(fact: Fact): number[] {
  const all = Array.from({ length: partitionsOf(fact) }, (_, partition) => partition);
  return hasOrdinary(fact) ? [ORDINARY, ...all] : all;
}

/** The partitions that messages leave in a change. If the number shrinks, those are the ones that are removed. */
export function leavingOf(fact: Fact): number[] {
  const { state, scattered, from, to } = fact;
  if (state === "stable") return [];
  if (scattered !== undefined) return activeOf(fact);
  if (from === FROM_ORDINARY) return [ORDINARY];
  return activeOf(fact).filter((partition) => partition < from && (to > from || partition >= to));
}

/** The partition that the messages of a bucket belong to. */
export function destinationOf(fact: Fact, bucket: number): number {
  return tableOf(fact.to)[bucket]!;
}

/**
 * The partitions other than {@link destinationOf} where messages of a bucket may still be, {@link ORDINARY} for the
 * ordinary queue: they have to be migrated. None if the fact is stable.
 */
export function sourcesOf(fact: Fact, bucket: number): readonly number[] {
  const { state, scattered, from } = fact;
  if (state === "stable") return NONE;
  const destination = destinationOf(fact, bucket);
  if (scattered !== undefined) return activeOf(fact).filter((one) => one !== destination);
  const source = from === FROM_ORDINARY ? ORDINARY : tableOf(from)[bucket]!;
  return source === destination ? NONE : [source];
}

/**
 * The active partitions, divided into those that messages leave and those where messages arrive. When the number grows,
 * messages arrive in the new partitions only. When they are scattered, they may leave and arrive anywhere.
 */
export function sidesOf(fact: Fact): { readonly leaving: number[]; readonly arriving: number[] } {
  const { to, from, scattered } = fact;
  const active = activeOf(fact);
  if (scattered !== undefined) return { leaving: active, arriving: active };
  const isArriving = (partition: number) => (to > from ? partition >= from : partition < to);
  return {
    leaving: active.filter((partition) => !isArriving(partition)),
    arriving: active.filter(isArriving),
  };
}

/**
 * Which buckets have messages that come to this partition from another one in the change that is under way: a byte for each,
 * 1 or 0; empty if there are none. What comes from the ordinary queue is not counted, which may be a part for long.
 */
export function arrivingAt(fact: Fact | undefined, partition: number): Buffer {
  if (fact === undefined || fact.state === "stable") return NOTHING;
  const { from, to, scattered } = fact;
  if (from === FROM_ORDINARY || scattered !== undefined) return NOTHING;
  const [before, after] = [tableOf(from), tableOf(to)];
  const buckets = Buffer.from(
    after.map((one, bucket) => (one === partition && before[bucket] !== partition ? 1 : 0)),
  );
  return buckets.includes(1) ? buckets : NOTHING;
}

const NONE: readonly number[] = [];

const NOTHING = Buffer.alloc(0);
