import { unpackEntry, type Entry } from "../../../src/lua/places/stream.ts";
import { beat } from "../../../src/lua/reliable/consumers.ts";
import { redrive } from "../../../src/lua/reliable/dead-letters.ts";
import { ack, bury, giveBackEntries, retryLater } from "../../../src/lua/reliable/deliveries.ts";
import { openGroup } from "../../../src/lua/reliable/groups.ts";
import { reclaim } from "../../../src/lua/reliable/reclaim.ts";
import { takeOver } from "../../../src/lua/reliable/take-over.ts";
import { makePlain } from "../../../src/lua/queue/make-plain.ts";
import { transfer } from "../../../src/lua/delayed/transfer.ts";
import { channel, keys, tidies, unlessLost } from "./clients.ts";
import { call, command, type Flow, type Program } from "./program.ts";

// What the library's clients send about the messages of a reliable queue.

/** Creates the stream and a group, as the first offer or take does. */
export const opens = (group = GROUP): Program =>
  function* () {
    yield* call(openGroup, keys, { channel, group, start: "0" }, [], { isResent: true });
  };

/** The group of the worlds that have one. */
export const GROUP = "group";

/** What a handler comes to. A failure is followed by a retry in a second. */
export type Ending = "ack" | "nack" | "bury" | "give back" | "give up";

export interface Consuming {
  readonly group?: string;
  /** What becomes of each delivery, in turn. A delivery that comes when there is no more is not read. */
  readonly endings: readonly Ending[];
  readonly delay?: number;
}

/**
 * A consumer: reads one message, handles it, settles it, and so on. A settlement whose reply was lost is tried again; an
 * entry whose read was lost is found by a sign of life, and goes back.
 */
export const consumes = (
  consumer: string,
  { group = GROUP, endings, delay = 1000 }: Consuming,
): Program =>
  function* (log) {
    for (const ending of endings) {
      const entry = yield* read(group, consumer);
      if (entry === "lost") {
        yield* givesBackStrangers(group, consumer);
        continue;
      }
      if (entry === undefined) continue;
      const payload = entry.payload.toString();
      if (entry.group !== undefined && entry.group !== group) {
        yield* persists(ack, { group, consumer, heldCount: 1 }, { entry: entry.entryId, own: 0 });
        continue;
      }
      log("handles", group, payload, entry.attempts + 1);
      const row = { entry: entry.entryId, own: entry.group === undefined ? 0 : 1 };
      const args = { channel, group, consumer, heldCount: 1 };
      const settled = yield* settles(ending, args, row, delay, () =>
        log("asks again", group, payload),
      );
      log("settled", group, payload, ending, settled);
    }
  };

function* read(group: string, consumer: string): Flow<Entry | undefined | "lost"> {
  try {
    const words = ["GROUP", group, consumer, "COUNT", 1];
    const found = yield* command<unknown[] | null>("XREADGROUP", keys.stream, words, {
      label: "reads",
    });
    // A list of streams, or with RESP3 a map of them.
    const [, entries] = (Array.isArray(found?.[0]) ? found[0] : (found ?? [])) as unknown[];
    const [id, fields] = (entries as [Buffer, Buffer[]][] | undefined)?.[0] ?? [];
    return id && fields && unpackEntry(id.toString(), fields);
  } catch (error) {
    unlessLost(error);
    return "lost";
  }
}

interface Membership {
  readonly channel: string;
  readonly group: string;
  readonly consumer: string;
  readonly heldCount: number;
}

function* settles(
  ending: Ending,
  args: Membership,
  row: { readonly entry: string; readonly own: number },
  delay: number,
  onLost: () => void,
): Flow<boolean> {
  const failed = { ...row, counted: 1, reason: "failed" };
  if (ending === "ack") return yield* persists(ack, args, row, onLost);
  if (ending === "bury") return yield* persists(bury, args, { ...row, reason: "bad" }, onLost);
  if (ending === "give back")
    return yield* persists(giveBackEntries, args, { ...row, counted: 0, reason: "" }, onLost);
  if (ending === "give up") return yield* persists(giveBackEntries, args, failed, onLost);
  for (;;) {
    try {
      const found = yield* call(retryLater, keys, args, [{ ...failed, delay }]);
      return found.settled[0] ?? false;
    } catch (error) {
      unlessLost(error);
      onLost();
    }
  }
}

function* persists<Arg extends string, Column extends string>(
  script: Parameters<typeof call<keyof typeof keys, Arg, boolean[], Column>>[0],
  args: Readonly<Record<Arg, string | number>>,
  row: Readonly<Record<Column, string | number>>,
  onLost: () => void = () => {},
): Flow<boolean> {
  for (;;) {
    try {
      return (yield* call(script, keys, args, [row]))[0] ?? false;
    } catch (error) {
      unlessLost(error);
      onLost();
    }
  }
}

function* givesBackStrangers(group: string, consumer: string): Flow<void> {
  const ids = yield* call(beat, keys, { group, consumer, after: "", limit: 100, isReading: 0 });
  const args = { channel, group, consumer, heldCount: 1 };
  for (const entry of ids) {
    yield* persists(giveBackEntries, args, { entry, own: 0, counted: 0, reason: "" });
  }
}

/** A process that takes a consumer for dead, rightly or not: it may only have stood still. */
export const reclaims = (consumer: string, maxAttempts = 10, group = GROUP, times = 1): Program =>
  function* () {
    for (let i = 0; i < times; i++) {
      try {
        const args = { channel, group, consumer, idle: 0, maxAttempts, limit: 1 };
        yield* call(reclaim, keys, args);
      } catch (error) {
        unlessLost(error);
      }
    }
  };

/** Makes all dead letters retry, in a second. */
export const redrives = (delay = 1000): Program =>
  function* (log) {
    try {
      const args = { channel, wanted: "", after: "", last: "", limit: 100, maxBytes: 9999, delay };
      const { redriven } = yield* call(redrive, keys, args);
      log("redriven", redriven);
    } catch (error) {
      unlessLost(error);
      log("redriven", "unknown");
    }
  };

/** Watches the LIST of a reliable queue: what others pushed there becomes entries. */
export const takesOver = (ids: readonly Buffer[]): Program =>
  function* () {
    for (const id of ids) {
      try {
        yield* call(takeOver, keys, { makes: 1 }, [{ id }]);
      } catch (error) {
        unlessLost(error);
      }
    }
  };

/** Pushes a payload to the LIST, as a program that knows nothing of streams does. */
export const pushes = (payload: string): Program =>
  function* (log) {
    yield* command("RPUSH", keys.ready, [payload]);
    log("pushed", payload);
  };

/** Makes the queue plain, as far as consumers let it. */
export const makesPlain = (times: number): Program =>
  function* () {
    for (let i = 0; i < times; i++) {
      try {
        const reply = yield* call(makePlain, keys, { channel, limit: 100, timeout: 0 });
        if (reply.isPlain) break;
      } catch (error) {
        unlessLost(error);
      }
    }
  };

/** Reclaims, moves, handles and acknowledges everything that is left, for these groups. */
export const drainsGroups = (
  consumers: readonly string[],
  groups: readonly string[] = [GROUP],
): Program =>
  function* (log) {
    const moving = { limit: 100, grace: 0, task: "drain", known: 0, claim: 1, makes: 1, mark: 0 };
    const ids = ["5", "6", "7", "8"].map((digit) => ({ id: Buffer.alloc(16, digit) }));
    yield* call(takeOver, keys, { makes: 1 }, ids);
    for (const group of groups) yield* opens(group)(log);
    for (const group of groups) {
      for (const consumer of consumers) {
        const args = { channel, group, consumer, idle: 0, maxAttempts: 99, limit: 100 };
        yield* call(reclaim, keys, args);
      }
    }
    // What is held back becomes a retry, which is due by now.
    yield* call(transfer.stream, keys, moving);
    const endings: Ending[] = Array.from({ length: 8 }, () => "ack");
    for (const group of groups) yield* consumes("drain", { group, endings })(log);
    yield* tidies();
  };
