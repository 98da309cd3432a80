import { offerKeyed } from "../../../src/lua/delayed/offer-keyed.ts";
import { remove } from "../../../src/lua/delayed/remove.ts";
import { transfer } from "../../../src/lua/delayed/transfer.ts";
import type { Batch } from "../../../src/lua/fragments/journal.ts";
import { guarded, heldFact } from "../../../src/lua/guarded.ts";
import { drainPage } from "../../../src/lua/partitions/drain-page.ts";
import { beginChange, changeFact, noteDone, readFact } from "../../../src/lua/partitions/fact.ts";
import { isInUse, removeRemains } from "../../../src/lua/partitions/partition.ts";
import {
  dropBatch,
  FIRST_PAGE,
  pullOut,
  pullOutPage,
} from "../../../src/lua/partitions/pull-out.ts";
import { pushIn } from "../../../src/lua/partitions/push-in.ts";
import type { Arguments, Row, Script } from "../../../src/lua/script.ts";
import {
  activeOf,
  destinationOf,
  formatDone,
  formatFact,
  FROM_ORDINARY,
  leavingOf,
  ORDINARY,
  parseFact,
  sourcesOf,
  type Fact,
} from "../../../src/partitions/ring/fact.ts";
import { partitionName, tableOf } from "../../../src/partitions/ring/ring.ts";
import { grouped } from "../../../src/queue/grouped.ts";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { bucketOf, packMember } from "../../../src/queue/message/message.ts";
import { unlessLost } from "./clients.ts";
import { call, command, type Flow, type Program } from "./program.ts";

// What the library's clients send about a queue in partitions, in the order of `change.ts`, `routing.ts` and
// `migration.ts`. What those do at once, a client here does one after the other.

const known = new Map<number, QueueKeys>();

/** The keys of a partition. */
export function keysAt(partition: number): QueueKeys {
  let keys = known.get(partition);
  if (keys === undefined) {
    keys = queueKeys(partition === ORDINARY ? "world" : partitionName("world", partition));
    known.set(partition, keys);
  }
  return keys;
}

const notice = `${keysAt(0).partitions}:notice`;

/** A message of a queue in partitions. */
export interface Located {
  readonly payload: string;
  readonly key: string;
  readonly bucket: number;
  readonly member: Buffer;
}

/** A message with an id that leads to this bucket. */
export function located(payload: string, bucket: number, key = ""): Located {
  const id = Buffer.alloc(16, payload);
  id.writeBigUInt64BE(1_760_000_000_000_000n);
  id.writeUInt32BE(bucket, 12);
  return { payload, key, bucket: bucketOf(id)!, member: packMember(id, Buffer.from(payload), key) };
}

/** A bucket that one more partition takes over when there are so many. */
export function bucketThatMoves(from: number, to: number): number {
  const [before, after] = [tableOf(from), tableOf(to)];
  return before.findIndex((partition, bucket) => partition !== after[bucket]);
}

/** What a process knows of the queue. */
class Process {
  fact: Fact;

  constructor(fact: Fact) {
    this.fact = fact;
  }

  learn(text: string): void {
    const found = parseFact(text);
    if (found !== undefined && found.epoch > this.fact.epoch) this.fact = found;
  }

  /** Runs the guarded form of a script, by the fact that the caller knows. A refusal tells the newer one. */
  *run<Key extends keyof QueueKeys, Arg extends string, Reply, Column extends string = never>(
    fact: Fact,
    partition: number,
    script: Script<Key, Arg, Reply, Column>,
    args: Arguments<Arg>,
    rows: readonly Row<Column>[] = [],
    { isResent = true, label = script.name, offers }: How = {},
  ): Flow<Reply> {
    try {
      const how = { isResent, offers, label: `${label} at ${partition}` };
      const checked = { ...args, knownFact: formatFact(fact), ofPartition: partition };
      return yield* call(guarded(script), keysAt(partition), checked as never, rows, how);
    } catch (error) {
      const newer = heldFact(error);
      if (newer !== undefined) this.learn(newer);
      throw error;
    }
  }

  /** Calls `act` with the fact, and again with a newer one if Redis has refused the older. */
  *withFact<Result>(act: (fact: Fact) => Flow<Result>): Flow<Result> {
    for (;;) {
      const { fact } = this;
      try {
        return yield* act(fact);
      } catch (error) {
        if (heldFact(error) === undefined || this.fact.epoch === fact.epoch) throw error;
      }
    }
  }
}

interface How {
  readonly isResent?: boolean;
  readonly label?: string;
  readonly offers?: string;
}

/* Migrating. */

const argsOf = (fact: Fact, source: number) => ({
  own: source,
  buckets: Buffer.from(tableOf(fact.to)),
});

function* deliver(process: Process, fact: Fact, source: number, batch: Batch): Flow<void> {
  const { number, rows } = batch;
  if (number === 0) return;
  for (const [to, some] of grouped(rows, (row) => row.to)) {
    const args = { channel: keysAt(to).channel, source, number };
    yield* process.run(fact, to, pushIn, args, some);
  }
  yield* process.run(fact, source, dropBatch, { number });
}

function* finishBatch(process: Process, fact: Fact, source: number): Flow<void> {
  const batch = yield* process.run(fact, source, pullOut, argsOf(fact, source));
  yield* deliver(process, fact, source, batch);
}

type Wanted = Readonly<Record<"id" | "key" | "member", Buffer | string>>;

function* migrate(process: Process, fact: Fact, source: number, row: Wanted): Flow<void> {
  for (;;) {
    const batch = yield* process.run(fact, source, pullOut, argsOf(fact, source), [row]);
    yield* deliver(process, fact, source, batch);
    if (!batch.isOld) return;
  }
}

function* migrateAll(process: Process, fact: Fact, source: number, first = FIRST_PAGE): Flow<void> {
  let cursor: Buffer | undefined = first;
  while (cursor !== undefined) {
    const args = { ...argsOf(fact, source), cursor, limit: PAGE, maxBytes: 9999 };
    const page: ReturnType<typeof pullOutPage.reply> = yield* process.run(
      fact,
      source,
      pullOutPage,
      args,
    );
    yield* deliver(process, fact, source, page);
    cursor = page.next;
  }
}

const PAGE = 100;

/* Changing the number. */

function* drainPartition(process: Process, fact: Fact, source: number): Flow<void> {
  const isRemoved = source >= fact.to || source === ORDINARY;
  let [after, letter] = ["", ""];
  for (let i = 0; i < 9; i++) {
    if (isRemoved) yield* migrateAll(process, fact, source);
    const args = {
      ...argsOf(fact, source),
      isRemoved: isRemoved ? 1 : 0,
      epoch: fact.epoch,
      after,
      letter,
      fenced: "",
      limit: PAGE,
      maxBytes: 9999,
      into: Math.max(0, source) % fact.to,
      timeout: 30_000,
    };
    const page = yield* process.run(fact, source, drainPage, args);
    yield* deliver(process, fact, source, page);
    ({ after, letter } = page);
    const left = isRemoved ? Object.values(page.left).reduce((sum, one) => sum + one, 0) : 0;
    if (page.rows.length === 0 && !page.isMore && left === 0) return;
  }
  throw new Error(`partition ${source} does not become empty`);
}

function* finishChange(process: Process, fact: Fact): Flow<void> {
  const { to } = fact;
  const active = activeOf(fact);
  for (const partition of active) yield* process.run(fact, partition, readFact, {});
  for (const partition of active) yield* finishBatch(process, fact, partition);
  const sources = leavingOf(fact);
  for (const source of sources) yield* migrateAll(process, fact, source);
  for (const source of sources) yield* drainPartition(process, fact, source);
  for (const source of sources) yield* migrateAll(process, fact, source, Buffer.from("r"));
  const stable: Fact = { ...fact, epoch: fact.epoch + 1, from: to, state: "stable" };
  for (const partition of active) {
    const texts = { fact: formatFact(fact), done: formatDone(fact) };
    const how = { isResent: true, label: `note-done at ${partition}` };
    if (!(yield* call(noteDone, keysAt(partition), texts, [], how))) return;
  }
  const others = active.filter((partition) => partition !== 0);
  for (const partition of others) yield* finishBatch(process, stable, partition);
  const args = { expected: formatDone(fact), fact: formatFact(stable), notice };
  process.learn(yield* call(changeFact, keysAt(0), args, [], { isResent: true }));
  yield* finishBatch(process, stable, 0);
  for (const partition of others) yield* drainLate(process, partition);
}

function* drainLate(process: Process, partition: number): Flow<void> {
  const { fact } = process;
  if (activeOf(fact).includes(partition) || fact.state !== "stable") return;
  yield* drainPartition(process, fact, partition);
  if (partition !== ORDINARY) yield* process.run(fact, partition, removeRemains, {});
}

/** Changes the number of partitions, as `setPartitions` does. */
function* setPartitions(process: Process, count: number): Flow<void> {
  let hasComeTrue = false;
  let hasTakenIn = false;
  for (;;) {
    const how = { isResent: true };
    process.learn((yield* call(readFact, keysAt(0), {}, [], how)) ?? "");
    const { fact } = process;
    const { epoch, from, to, state } = fact;
    try {
      if (state === "stable" && to === count) {
        const isLeft =
          !hasTakenIn && (yield* call(isInUse, keysAt(ORDINARY), { asked: "left" }, [], how));
        if (!isLeft) break;
        yield* begin(process, { ...fact, epoch: epoch + 1, from: FROM_ORDINARY, state: "moving" });
      } else if (hasComeTrue) {
        break;
      } else if (state === "stable") {
        yield* begin(process, { ...fact, epoch: epoch + 1, to: count, from: to, state: "moving" });
      } else {
        yield* finishChange(process, fact);
      }
    } catch (error) {
      if (heldFact(error) === undefined) throw error;
    }
    if (state !== "stable") {
      hasComeTrue ||= to === count;
      hasTakenIn ||= from === FROM_ORDINARY;
    }
  }
  yield* recover(process);
}

/** Finishes what dead processes have left behind. */
function* recover(process: Process): Flow<void> {
  const { fact } = process;
  if (fact.state !== "stable") return;
  try {
    for (const partition of activeOf(fact)) yield* finishBatch(process, fact, partition);
    for (let partition = fact.to; ; partition++) {
      const found = yield* call(readFact, keysAt(partition), {}, [], { isResent: true });
      if (found === undefined) return;
      yield* drainLate(process, partition);
    }
  } catch (error) {
    if (heldFact(error) === undefined) throw error;
  }
}

function* begin(process: Process, next: Fact): Flow<void> {
  const args = {
    expected: formatFact(process.fact),
    fact: formatFact(next),
    holding: formatFact({ ...next, state: "holding" }),
    notice,
    timeout: 7000,
  };
  process.learn(yield* call(beginChange, keysAt(0), args, [], { isResent: true }));
}

/* Programs. */

/** The fact that processes know at the start: so many partitions, stable. */
export const stableFact = (count: number): Fact => ({
  epoch: 1,
  to: count,
  from: count,
  state: "stable",
  servers: 1,
});

/** `setPartitions(count)`, by a process that knows of `before`. */
export const changes = (before: number, count: number): Program =>
  function* (log) {
    yield* setPartitions(new Process(stableFact(before)), count);
    log("changed", count);
  };

/** Offers a message with a key, and again if Redis refuses the fact; see `Routing.send`. */
export const offersTo = (before: number, one: Located, delay = 1000): Program =>
  function* (log) {
    const process = new Process(stableFact(before));
    const { bucket, key, payload, member } = one;
    const sentBy: Fact[] = [];
    log("offers", payload);
    const { outcome } = yield* process.withFact(function* (fact) {
      if (sentBy.length > 0) yield* migrateSent(process, fact, one, sentBy);
      for (const source of sourcesOf(fact, bucket)) {
        yield* migrate(process, fact, source, { id: "", key, member: "" });
      }
      sentBy.push(fact);
      const to = destinationOf(fact, bucket);
      const row = { member, delay, deadline: "", key, rule: "ignore", maxWait: "" };
      const args = { channel: keysAt(to).channel };
      const how = { label: `offers ${payload}`, offers: payload };
      const { results } = yield* process.run(fact, to, offerKeyed, args, [row], how);
      return results[0]!;
    });
    log("offered", payload, outcome);
  };

function* migrateSent(
  process: Process,
  fact: Fact,
  { bucket, member }: Located,
  sentBy: readonly Fact[],
): Flow<void> {
  const partitions = new Set(sentBy.map((earlier) => destinationOf(earlier, bucket)));
  const last = sentBy.at(-1)?.epoch ?? 0;
  if (fact.epoch > last + 2) for (const partition of activeOf(fact)) partitions.add(partition);
  else partitions.delete(destinationOf(fact, bucket));
  for (const source of sourcesOf(fact, bucket)) {
    partitions.delete(source);
    partitions.add(source);
  }
  for (const partition of partitions) {
    yield* migrate(process, fact, partition, { id: "", key: "", member });
  }
}

/** Cancels a message by its business key; see `Messages.cancel`. */
export const cancelsIn = (before: number, { key, bucket }: Located): Program =>
  function* (log) {
    const process = new Process(stableFact(before));
    const rows = [{ id: "", key }];
    const how = { isResent: false };
    try {
      const wasHere = yield* process.withFact(function* (fact) {
        for (const source of sourcesOf(fact, bucket)) {
          yield* migrate(process, fact, source, { id: "", key, member: "" });
        }
        const to = destinationOf(fact, bucket);
        return (yield* process.run(fact, to, remove, {}, rows, how))[0] ?? false;
      });
      const flag =
        wasHere ||
        (yield* process.withFact(function* (fact) {
          const active = activeOf(fact);
          if (fact.state !== "stable") {
            for (const one of active)
              yield* migrate(process, fact, one, { id: "", key, member: "" });
          }
          for (const one of active) {
            if ((yield* process.run(fact, one, remove, {}, rows, how))[0]) return true;
          }
          return false;
        }));
      log("cancelled", key, flag);
    } catch (error) {
      unlessLost(error);
      log("cancelled", key, "unknown");
    }
  };

/** A transfer task of one partition. Redis refuses it for an older fact, and it tries again. */
export const movesAt = (before: number, partition: number, times: number): Program =>
  function* () {
    const process = new Process(stableFact(before));
    const args = { limit: 1, grace: 0, task: "mover", known: 0, claim: 0, makes: 0, mark: 0 };
    const how = { isResent: false };
    for (let i = 0; i < times; i++) {
      try {
        yield* process.run(process.fact, partition, transfer.list, args, [], how);
      } catch (error) {
        if (heldFact(error) === undefined) unlessLost(error);
      }
    }
  };

/** Finishes the change, moves and takes everything. */
export const drainsPartitions = (before: number, count: number, all: readonly number[]): Program =>
  function* (log) {
    const process = new Process(stableFact(before));
    yield* setPartitions(process, count);
    const args = { limit: 100, grace: 0, task: "drain", known: 0, claim: 0, makes: 0, mark: 0 };
    for (const partition of all) {
      yield* call(transfer.list, keysAt(partition), args);
      const payloads = yield* command<Buffer[] | null>("LPOP", keysAt(partition).ready, [100]);
      for (const payload of payloads ?? []) log("took", payload.toString(), partition);
    }
  };
