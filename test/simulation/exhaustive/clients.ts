import type { Into } from "../../../src/lua/family.ts";
import { offer } from "../../../src/lua/delayed/offer.ts";
import { offerKeyed, type Outcome } from "../../../src/lua/delayed/offer-keyed.ts";
import { remove } from "../../../src/lua/delayed/remove.ts";
import { reschedule } from "../../../src/lua/delayed/reschedule.ts";
import { tidyAddresses } from "../../../src/lua/delayed/tidy.ts";
import { transfer } from "../../../src/lua/delayed/transfer.ts";
import { giveBack } from "../../../src/lua/ready/ready.ts";
import { packAddress } from "../../../src/queue/message/message.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { bytes, message, type Message } from "../../helpers/moves.ts";
import { NOW } from "./explore.ts";
import { call, command, LostError, type Flow, type Program } from "./program.ts";

// What the library's clients send about delayed and ready messages, in the same order.

/** The keys of the queue of every world that is not in partitions. */
export const keys = queueKeys("world");
export const { channel } = keys;

/** A message of which the tests know all bytes. Its payload is one letter. */
export const plainly = (payload: string, key = "") => message(payload, 0, key);

interface Offered {
  readonly delay?: number;
  readonly rule?: "ignore" | "replace" | "update";
  readonly maxWait?: number;
}

/** Offers a message, on the connection that sends again. */
export const offers = (
  one: Message,
  { delay = 1000, rule = "ignore", maxWait }: Offered = {},
): Program =>
  function* (log) {
    const how = { label: `offers ${one.payload}`, isResent: true, offers: one.payload };
    const row = { member: bytes(one.member), delay, deadline: "" };
    log("offers", one.payload);
    if (one.key === "") {
      yield* call(offer, keys, { channel }, [row], how);
      log("offered", one.payload, "added" satisfies Outcome);
      return;
    }
    const keyed = { ...row, key: one.key, rule, maxWait: maxWait ?? "" };
    const { results } = yield* call(offerKeyed, keys, { channel }, [keyed], how);
    log("offered", one.payload, results[0]!.outcome, results[0]!.deadline - NOW);
  };

/** Cancels a message by its business key. */
export const cancels = (key: string): Program =>
  function* (log) {
    try {
      const [flag = false] = yield* call(remove, keys, {}, [{ id: "", key }]);
      log("cancelled", key, flag);
    } catch (error) {
      unlessLost(error);
      log("cancelled", key, "unknown");
    }
  };

/** Cancels a message by its id, which has this deadline. */
export const cancelsById = (one: Message, deadline: number): Program =>
  function* (log) {
    try {
      const id = packAddress(deadline, bytes(one.id));
      const [flag = false] = yield* call(remove, keys, {}, [{ id, key: "" }]);
      log("cancelled", one.payload, flag);
    } catch (error) {
      unlessLost(error);
      log("cancelled", one.payload, "unknown");
    }
  };

/** Gives a message, named by its key, a new deadline. */
export const reschedules = (key: string, delay: number): Program =>
  function* (log) {
    try {
      const args = { channel, id: "", key, delay, deadline: "" };
      const found = yield* call(reschedule, keys, args);
      log("rescheduled", key, found === undefined ? false : found.deadline);
    } catch (error) {
      unlessLost(error);
      log("rescheduled", key, "unknown");
    }
  };

interface Moving {
  readonly limit?: number;
  readonly into?: Into;
  readonly makes?: boolean;
}

/** A transfer task: looks some times, and moves one message at most each time. */
export const moves = (
  times: number,
  task: string,
  { limit = 1, into = "list", makes = into === "stream" }: Moving = {},
): Program =>
  function* () {
    const args = { limit, grace: 0, task, known: 0, claim: 1, makes: makes ? 1 : 0, mark: 0 };
    for (let i = 0; i < times; i++) {
      try {
        yield* call(transfer[into], keys, args);
      } catch (error) {
        unlessLost(error);
      }
    }
  };

/** Takes one message at a time, without waiting. */
export const takes = (times: number): Program =>
  function* (log) {
    for (let i = 0; i < times; i++) {
      const [payload] = (yield* command<Buffer[] | null>("LPOP", keys.ready, [1])) ?? [];
      if (payload !== undefined) log("took", payload.toString());
    }
  };

/**
 * Takes messages and gives them back. Tries until there is a reply, and removes the receipt then, as `GiveBack`.
 */
export const givesBack = (receipt: string, max: number): Program =>
  function* (log) {
    let popped: Buffer[] = [];
    try {
      popped = (yield* command<Buffer[] | null>("LPOP", keys.ready, [max])) ?? [];
    } catch (error) {
      unlessLost(error);
      // What was popped is lost with the reply: a plain queue delivers at most once.
      for (let i = 0; i < max; i++) log("holds", "unknown");
    }
    for (const payload of popped) log("holds", payload.toString());
    if (popped.length === 0) return;
    const rows = popped.map((payload) => ({ payload }));
    for (;;) {
      try {
        yield* call(giveBack, keys, { receipt }, rows);
        break;
      } catch (error) {
        unlessLost(error);
      }
    }
    for (const payload of popped) log("gave back", payload.toString());
    try {
      yield* command("ZREM", keys.receipts, [receipt]);
    } catch (error) {
      unlessLost(error);
    }
  };

/** Whatever else goes wrong is not expected. */
export function unlessLost(error: unknown): void {
  if (!(error instanceof LostError)) throw error;
}

/** Moves and takes everything that is left. */
export const drain: Program = function* (log) {
  const args = { limit: 100, grace: 0, task: "drain", known: 0, claim: 1, makes: 0, mark: 0 };
  yield* call(transfer.list, keys, args);
  yield* tidies();
  const payloads = yield* command<Buffer[] | null>("LPOP", keys.ready, [100]);
  for (const payload of payloads ?? []) log("took", payload.toString());
};

/** Drops elements of the insertion order that point to nothing. */
export function* tidies(): Flow<void> {
  while ((yield* call(tidyAddresses, keys, { step: 100, thorough: 0 })).hasMore);
}

/** One program after the other. */
export const inTurn = (...programs: readonly Program[]): Program =>
  function* (log) {
    for (const program of programs) yield* program(log);
  };
