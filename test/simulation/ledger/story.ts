import type { FaultKind, Note, Noted } from "../sim.ts";

/** A point of the history. */
export interface Moment {
  /** The place in the history: of two moments, the earlier one has the smaller index. */
  readonly index: number;
  /** The milliseconds since the run began. */
  readonly at: number;
  /** The events released until then. What has the same step happened in one turn of the event loop. */
  readonly step: number;
  /** The server's clock (epoch ms); of several servers, the latest one. */
  readonly now: number;
}

/** A call of the API. It has neither ended nor failed if its process crashed first, or if it hangs. */
export interface Call {
  readonly number: number;
  readonly by: string;
  readonly verb: string;
  readonly args: Note;
  readonly begun: Moment;
  ended?: Moment;
  /** What the promise resolved to, as the ledger notes it. */
  answer?: unknown;
  /** The code of the error that the promise rejected with, or its name. */
  error?: string;
  message?: string;
  /** Of a call that rejected: whether it may have been carried out all the same. */
  effect?: "none" | "unknown";
}

/** An offer of one message, also as a part of `offerMany`. */
export interface Offer extends Call {
  /** The payload. */
  readonly n: number;
  /** Messages with the same key are judged together, since only Redis knows which of them a call by key has met. */
  readonly key: string | undefined;
  /** What became of it: in Redis, not there, or nobody knows. */
  fate: "stored" | "rejected" | "not-stored" | "unknown";
  outcome?: string;
  id?: string;
  deadline?: number;
}

/** A message that reached the code of a user. */
export interface Delivery extends Moment {
  readonly number: number;
  readonly n: number;
  readonly by: string;
  readonly group: string;
  /** Taken out of the delayed messages, due or not. */
  readonly isEarly: boolean;
  /** Taken by the reader that drains the queue at the end. */
  readonly isLast: boolean;
  /** 0 in a plain queue. */
  readonly attempt: number;
  readonly failures: number;
  readonly id: string | undefined;
  readonly key: string | undefined;
  /** What `orderBy` returned. */
  readonly sequence: string | undefined;
  /** What decides the partition. */
  readonly partitionKey: string | undefined;
  readonly fence: number | undefined;
  /** How the handler ended: it returned, threw, rejected the message, or was cut short by closing. */
  end?: Moment & { readonly how: string };
  /** When its consumer was done with it without having settled it. */
  forgottenAt?: Moment;
  /** When its signal was aborted. */
  abortedAt?: Moment;
  /** Calls of `ack`, `nack`, `reject` and `extend`. */
  readonly settlements: Call[];
}

/** A dead letter that was seen at some moment. */
export interface Death extends Moment {
  readonly n: number;
  readonly group: string;
  readonly attempt: number;
  readonly reason: string;
}

/** The moment when a process began to take for a group. */
export interface Join extends Moment {
  readonly group: string;
}

/** A fault, with the time during which it lasted. */
export interface Fault {
  readonly kind: FaultKind;
  /** Undefined if it met all processes. */
  readonly process: string | undefined;
  /** What the connection that it met is for; undefined if it met all of the process, or one that had no name yet. */
  readonly role: string | undefined;
  readonly index: number;
  readonly at: number;
  readonly until: number;
  /** Of a clock's step: the milliseconds. */
  readonly by: number;
  /** Of a failover: when the state was copied to which the server fell back. */
  readonly since: number;
  /** Of a failover that restores an older copy: the processes that certainly had seen a later state for long. */
  readonly remembering: readonly string[] | undefined;
  /** Of withdrawn rights: the command. */
  readonly command: string | undefined;
}

/** What a process did by itself: it told that Redis went back, or moved messages. */
export interface Deed extends Moment {
  readonly by: string;
}

/** Messages that a process has moved. */
export interface Move extends Deed {
  readonly count: number;
  /** When, by the server's clock (epoch ms). */
  readonly movedAt: number;
}

/** A key of the user's, as it stood from some moment on. */
export interface GuardState extends Moment {
  readonly key: string;
  readonly state: KeyState;
}

/** What a key holds: nothing, a string, the fields of a HASH, or the elements of a LIST. */
export type KeyState = null | string | Readonly<Record<string, string>> | readonly string[];

export function isList(state: KeyState): state is readonly string[] {
  return Array.isArray(state);
}

/** A message that was dropped when it was due, as the process says that moved it. */
export interface Drop extends Moment {
  readonly id: string;
  readonly reason: "onlyIf" | "deliverWithin";
}

/** An error event of a client. */
export interface Trouble extends Moment {
  readonly by: string;
  readonly code: string;
  readonly message: string;
}

/** What happened to one queue, in order. */
export class Story {
  readonly offers = new Map<number, Offer>();
  readonly calls: Call[] = [];
  readonly deliveries: Delivery[] = [];
  readonly deaths: Death[] = [];
  readonly joins: Join[] = [];
  readonly faults: Fault[] = [];
  readonly troubles: Trouble[] = [];
  readonly guards: GuardState[] = [];
  readonly drops: Drop[] = [];
  /** When a process told that Redis went back to an older copy. */
  readonly restores: Deed[] = [];
  /** When a process learnt that it had moved messages. */
  readonly moves: Move[] = [];
  /** Every moment, in order. */
  readonly moments: Moment[] = [];
  /** Since when no fault was injected any more. */
  calm: Moment | undefined;
  /** The last moment. */
  end: Moment = { index: 0, at: 0, step: 0, now: 0 };
  readonly #calls = new Map<number, Call>();
  readonly #deliveries = new Map<number, Delivery>();
  readonly #byHex = new Map<string, Offer>();

  constructor(history: readonly Noted[], queue: string) {
    for (const [index, noted] of history.entries()) {
      if ("fault" in noted.event) this.#addFault(noted, index);
      else if (noted.event["queue"] === queue) this.#add(noted, index);
    }
    for (const offer of this.offers.values())
      if (offer.id !== undefined && offer.fate === "stored")
        this.#byHex.set(hexOf(offer.id), offer);
  }

  /** The calls of one kind. */
  callsOf(...verbs: string[]): Call[] {
    return this.calls.filter(({ verb }) => verbs.includes(verb));
  }

  /** The message that an id names, under each of its deadlines. */
  offerOf(id: string): Offer | undefined {
    return this.#byHex.get(hexOf(id));
  }

  /** The deliveries of a message. */
  deliveriesOf(n: number): Delivery[] {
    return this.deliveries.filter((delivery) => delivery.n === n);
  }

  /** Whether one of these faults met the process between two moments. */
  isHit(
    process: string,
    kinds: readonly FaultKind[],
    from: Pick<Moment, "at">,
    to: Pick<Moment, "at"> = this.end,
  ): boolean {
    return this.faultsOn(process, kinds, from, to).length > 0;
  }

  /** The faults that met the process between two moments. */
  faultsOn(
    process: string,
    kinds: readonly FaultKind[],
    from: Pick<Moment, "at">,
    to: Pick<Moment, "at"> = this.end,
  ): Fault[] {
    return this.faults.filter(
      (fault) =>
        kinds.includes(fault.kind) &&
        (fault.process === undefined || fault.process === process) &&
        fault.at <= to.at &&
        fault.until >= from.at,
    );
  }

  /** The latest that the server's clock can have shown until then, whichever way it was set. */
  latest(moment: Moment): number {
    let offset = 0;
    let most = 0;
    for (const fault of this.faults) {
      if (fault.kind !== "clock-step" || fault.index > moment.index) continue;
      offset += fault.by;
      most = Math.max(most, offset);
    }
    return moment.now - offset + most;
  }

  #add({ at, step, process, event }: Noted, index: number): void {
    const moment: Moment = { index, at, step, now: event["now"] as number };
    this.#reach(moment);
    if ("do" in event) this.#begin(event, moment);
    else if ("call" in event) this.#settle(event, moment);
    else if ("got" in event) this.#deliver(event, moment);
    else if ("handlerEnded" in event) {
      const delivery = this.#deliveries.get(event["handlerEnded"] as number);
      if (delivery !== undefined) delivery.end = { ...moment, how: event["how"] as string };
    } else if ("aborted" in event) {
      const delivery = this.#deliveries.get(event["aborted"] as number);
      if (delivery !== undefined) delivery.abortedAt = moment;
    } else if ("forgotten" in event) {
      const delivery = this.#deliveries.get(event["forgotten"] as number);
      if (delivery !== undefined) delivery.forgottenAt = moment;
    } else if ("dead" in event) {
      const { dead, group, attempt, reason } = event as { dead: number } & Omit<Death, "n">;
      this.deaths.push({ ...moment, n: dead, group, attempt, reason });
    } else if ("joins" in event) {
      this.joins.push({ ...moment, group: event["joins"] as string });
    } else if ("trouble" in event) {
      const { trouble, by, message } = event as { trouble: string } & Omit<Trouble, "code">;
      this.troubles.push({ ...moment, by, code: trouble, message });
    } else if ("guard" in event) {
      const { guard: key, state } = event as { guard: string; state: KeyState };
      this.guards.push({ ...moment, key, state });
    } else if ("dropped" in event) {
      const { dropped: id, reason } = event as { dropped: string; reason: Drop["reason"] };
      this.drops.push({ ...moment, id, reason });
    } else if ("restored" in event) {
      this.restores.push({ ...moment, by: event["by"] as string });
    } else if ("moved" in event) {
      const { moved, movedAt } = event as { moved: number; movedAt: number };
      this.moves.push({ ...moment, by: process ?? "", count: moved, movedAt });
    } else if ("calm" in event) this.calm = moment;
  }

  #begin(event: Note, begun: Moment): void {
    const { call: number, by, do: verb } = event as { call: number; by: string; do: string };
    const call: Call = { number, by, verb, args: event, begun };
    this.calls.push(call);
    this.#calls.set(number, call);
    if (verb === "offer") {
      const { n, key } = event as { n: number; key?: string };
      this.offers.set(n, Object.assign(call, { n, key, fate: "unknown" as const }));
    }
    const delivery = this.#deliveries.get(event["delivery"] as number);
    delivery?.settlements.push(call);
  }

  #settle(event: Note, moment: Moment): void {
    const call = this.#calls.get(event["call"] as number);
    if (call === undefined) return;
    call.ended = moment;
    const offer = call.verb === "offer" ? (call as Offer) : undefined;
    if ("error" in event) {
      const { error, message, effect } = event as Record<"error" | "message", string> & {
        effect: "none" | "unknown";
      };
      Object.assign(call, { error, message, effect });
      if (offer !== undefined) offer.fate = effect === "none" ? "not-stored" : "unknown";
    } else {
      call.answer = event["answer"];
      if (offer === undefined) return;
      const { id, deadline, outcome } = (event["answer"] ?? {}) as Partial<
        Pick<Offer, "id" | "deadline" | "outcome">
      >;
      Object.assign(offer, { id, deadline, outcome });
      offer.fate = outcome === "existing" ? "rejected" : "stored";
    }
  }

  #deliver(event: Note, moment: Moment): void {
    const { got, delivery: number, by } = event as { got: number; delivery: number; by: string };
    const offer = this.offers.get(got);
    const delivery: Delivery = {
      ...moment,
      number,
      n: got,
      by,
      group: (event["group"] as string | undefined) ?? "",
      isEarly: event["isEarly"] === true,
      isLast: event["isLast"] === true,
      attempt: (event["attempt"] as number | undefined) ?? 0,
      failures: (event["failures"] as number | undefined) ?? 0,
      id: event["id"] as string | undefined,
      key: event["key"] as string | undefined,
      sequence: event["sequence"] as string | undefined,
      partitionKey: (offer?.args["partitionKey"] as string | undefined) ?? offer?.key,
      fence: event["fence"] as number | undefined,
      settlements: [],
    };
    this.deliveries.push(delivery);
    this.#deliveries.set(number, delivery);
  }

  #addFault({ at, step, process, event }: Noted, index: number): void {
    this.#reach({ index, at, step, now: this.end.now + at - this.end.at });
    const kind = event["fault"] as FaultKind;
    const duration = event["duration"] as number | undefined;
    const { owner, role } = partsOf(event["connection"]);
    this.faults.push({
      kind,
      process: process ?? (event["process"] as string | undefined) ?? owner,
      role,
      index,
      at,
      until:
        LASTING.includes(kind) || event["vanishes"] === true ? at + (duration ?? Infinity) : at,
      by: duration ?? 0,
      since: (event["since"] as number | undefined) ?? 0,
      remembering: event["remembering"] as readonly string[] | undefined,
      command: event["command"] as string | undefined,
    });
  }

  #reach(moment: Moment): void {
    this.end = moment;
    this.moments.push(moment);
  }
}

/** The faults that last. So does the end of a process that leaves its connections. */
const LASTING: readonly FaultKind[] = [
  "silence",
  "delay",
  "late-replies",
  "trickle",
  "stall",
  "rights",
];

/** The process and the role of a connection, by what the trace calls it: `name.role#number`, or `name#number`. */
function partsOf(connection: unknown): { readonly owner?: string; readonly role?: string } {
  return /^(?<owner>[^.#]*)(\.(?<role>\w+))?#/.exec(String(connection))?.groups ?? {};
}

/** The part of an id that stays when the deadline changes. */
export function hexOf(id: string): string {
  return id.slice(id.indexOf("-") + 1);
}
