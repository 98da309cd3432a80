/**
 * The ledger of a world: it notes what was asked of a queue and what came of it, and judges at the end whether the queue
 * has kept its promises.
 *
 * A rule knows what the guides excuse, and excuses no more: a crash loses what is on its way to a consumer of a plain
 * queue, an offer that is sent again may be stored anew if its first copy has gone, and so on (`ledger/`).
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { DroppedEvent, TransferEvent } from "../../src/events.ts";
import { DelaylineError, OfferError, RedisError } from "../../src/errors.ts";
import {
  again,
  attempts,
  deaths,
  pausesOfRetries,
  exactSettlements,
  givenUp,
  identity,
  uncounted,
} from "./ledger/attempts.ts";
import { errors, settles, troubles } from "./ledger/calls.ts";
import { newGroups } from "./ledger/groups.ts";
import { counted, dropped, guarded, within } from "./ledger/guards.ts";
import { inHand, rested } from "./ledger/in-hand.ts";
import { fences, oneAtATime, strictOrder } from "./ledger/sequences.ts";
import {
  cancelled,
  deadlines,
  early,
  lost,
  order,
  refused,
  stuck,
  twice,
  undone,
} from "./ledger/messages.ts";
import { paused, takenInPause } from "./ledger/pauses.ts";
import type { Promises, Rule } from "./ledger/promises.ts";
import { punctual } from "./ledger/punctual.ts";
import { rated, ratedOverChanges } from "./ledger/rates.ts";
import { restoredFor, restoredOnce, restingAfterRestore } from "./ledger/restores.ts";
import { inTurn } from "./ledger/turns.ts";
import { endedThen, heardOf, exactStages, revoked, settledLate } from "./ledger/revocations.ts";
import { exactYes } from "./ledger/yes.ts";
import { Story, type KeyState } from "./ledger/story.ts";
import { cleared, keys, views, wrongNo } from "./ledger/verdicts.ts";
import type { Note, Noted, Sim, SimProcess } from "./sim.ts";

export type { Promises } from "./ledger/promises.ts";

/** Every rule that a history is judged by. */
const RULES: readonly Rule[] = [
  lost,
  undone,
  refused,
  cancelled,
  twice,
  early,
  deadlines,
  order,
  stuck,
  guarded,
  within,
  dropped,
  counted,
  newGroups,
  wrongNo,
  views,
  cleared,
  keys,
  identity,
  attempts,
  again,
  uncounted,
  exactSettlements,
  exactYes,
  givenUp,
  pausesOfRetries,
  deaths,
  revoked,
  settledLate,
  exactStages,
  endedThen,
  heardOf,
  oneAtATime,
  fences,
  strictOrder,
  paused,
  takenInPause,
  rated,
  ratedOverChanges,
  inHand,
  rested,
  punctual,
  inTurn,
  restoredFor,
  restoredOnce,
  restingAfterRestore,
  settles,
  errors,
  troubles,
];

/** Returns what breaks the promises of a queue in this history, one line each. */
export function judge(history: readonly Noted[], promises: Promises): string[] {
  const story = new Story(history, promises.queue);
  return RULES.flatMap((rule) => rule(story, promises));
}

/** Notes what happens to one queue. */
export class Ledger {
  readonly sim: Sim;
  readonly queue: string;
  readonly #servers: readonly number[];
  #calls = 0;
  #messages = 0;
  #deliveries = 0;

  constructor(sim: Sim, queue: string) {
    this.sim = sim;
    this.queue = queue;
    this.#servers = sim.controls.map((_, i) => i);
  }

  /** The payload of the next message: no other one has it. */
  nextMessage(): number {
    return ++this.#messages;
  }

  /** The clock of the server; of several servers, the latest one. */
  get now(): number {
    return Math.max(...this.#servers.map((server) => this.sim.now(server)));
  }

  /**
   * Makes a call in a process, and notes when it began and how it ended.
   *
   * Returns what it resolved to, or undefined if it rejected: what that means is for the rules to judge.
   */
  async call<Result>(
    process: SimProcess,
    verb: string,
    args: Note,
    make: () => Promise<Result>,
    answerOf: (result: Result) => unknown = (result) => result ?? null,
  ): Promise<Result | undefined> {
    const settle = this.begin(process, verb, args);
    try {
      const result = await process.run(make);
      settle.answer(answerOf(result));
      return result;
    } catch (error) {
      settle.fail(error);
      return undefined;
    }
  }

  /** Notes that a call begins. Returns how to note its end. */
  begin(process: SimProcess, verb: string, args: Note) {
    const call = ++this.#calls;
    this.note(process, { ...args, call, by: process.name, do: verb });
    return {
      answer: (answer: unknown) => this.note(process, { call, answer }),
      fail: (error: unknown) => this.note(process, { call, ...described(error) }),
    };
  }

  /** Notes that a message has reached the code of a user. Returns the number of the delivery. */
  deliver(process: SimProcess, n: number, details: Note = {}): number {
    const delivery = ++this.#deliveries;
    this.note(process, { ...details, got: n, delivery, by: process.name });
    return delivery;
  }

  /** Notes how a handler has ended. */
  handlerEnded(process: SimProcess, delivery: number, how: HandlerEnd): void {
    this.note(process, { handlerEnded: delivery, how });
  }

  /** Notes what a key of the user's holds from now on. */
  guard(key: string, state: KeyState): void {
    this.note(undefined, { guard: key, state });
  }

  /** Notes which messages are dropped, as the processes tell. Returns how to stop. */
  watchDrops(): () => void {
    const note = (event: unknown) => {
      const { queue, id, reason } = event as DroppedEvent;
      if (queue === this.queue) this.note(undefined, { dropped: id, reason });
    };
    subscribe(DROPPED, note);
    return () => void unsubscribe(DROPPED, note);
  }

  /** Notes which process moves messages. Returns how to stop. */
  watchMoves(): () => void {
    const note = (event: unknown) => {
      const { queue, count, at } = event as TransferEvent;
      if (queue === this.queue) this.note(undefined, { moved: count, movedAt: at });
    };
    subscribe(TRANSFER, note);
    return () => void unsubscribe(TRANSFER, note);
  }

  /** Notes that the signal of a delivery is aborted. */
  aborted(process: SimProcess, delivery: number): void {
    this.note(process, { aborted: delivery });
  }

  /** Notes the events of a client: errors, and that Redis went back. */
  watch(process: SimProcess): void {
    process.line.on("error", (error) => {
      this.note(process, { trouble: error.code, by: process.name, message: error.message });
    });
    process.line.on("restored", ({ isPausing }) => {
      this.note(process, { restored: isPausing, by: process.name });
    });
  }

  /** Notes that from now on no fault is injected. */
  calm(): void {
    this.note(undefined, { calm: true });
  }

  /** Adds to the history. A process that has crashed notes nothing more. */
  note(process: SimProcess | undefined, event: Note): void {
    if (process !== undefined && !process.isAlive) return;
    this.sim.note({ queue: this.queue, ...event, now: this.now });
  }
}

const DROPPED = "delayline:dropped";
const TRANSFER = "delayline:transfer";

/** How a handler ends. */
export type HandlerEnd = "returned" | "threw" | "rejected" | "cut short" | "given up";

/** What an error says of the call that it ended. */
function described(error: unknown): Note {
  const message = error instanceof Error ? error.message : String(error);
  return { error: codeOf(error), message, effect: effectOf(error) };
}

function codeOf(error: unknown): string {
  if (error instanceof DelaylineError) return error.code;
  return error instanceof Error ? error.name : typeof error;
}

function effectOf(error: unknown): "none" | "unknown" {
  if (error instanceof OfferError) return error.effect === "unknown" ? "unknown" : "none";
  if (error instanceof RedisError) return error.effect;
  return error instanceof DelaylineError ? "none" : "unknown";
}
