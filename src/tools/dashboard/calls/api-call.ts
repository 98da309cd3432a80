import type { MessageId } from "../../../index.ts";
import { checks, ids, layout, type Place, type Verb } from "../../../inside.ts";
import { PLACE_NAMES, VERBS } from "../../view/places.ts";
import type { Chosen } from "../../view/change.ts";
import type { InspectedQueue, Inspector } from "../../view/inspector.ts";
import { readablePayload, type ReadablePayload } from "../../view/text.ts";
import { HttpError } from "../http/reply.ts";
import type { Doctor } from "../readings/doctor.ts";
import type { KeptHistory } from "../../view/samples/kept-history.ts";
import type { Months } from "../../view/samples/month.ts";
import type { QueueView } from "../../view/samples/queue-view.ts";
import type { Readings } from "../readings/readings.ts";
import type { Sampler } from "../../view/samples/sampler.ts";
import type { EventStreams } from "./event-streams.ts";

/** The parts of a running dashboard that its calls share. */
export interface Running {
  readonly settings: { readonly readOnly: boolean; readonly payloads: boolean };
  readonly inspector: Inspector;
  readonly sampler: Sampler;
  readonly kept: KeptHistory;
  readonly view: QueueView;
  readonly readings: Readings;
  readonly months: Months;
  readonly doctor: Doctor;
  readonly streams: EventStreams;
}

/** The longest value in a query, in characters. Keys have at most 200 bytes, and cursors are short. */
const MAX_VALUE = 1000;

/** What can be done with a schedule. */
const SCHEDULE_VERBS = ["run", "pause", "resume", "remove"] as const;

/** What can be done with a lane. */
const LANE_VERBS = ["pause", "unpin"] as const;

/** The most messages to choose in a list. */
const MOST_AT_ONCE = 100;

/** One call of the API: the parts of the dashboard that it uses, and its checked parameters. */
export class ApiCall {
  readonly running: Running;
  readonly request: Request;
  readonly #queue: string | undefined;
  readonly #query: URLSearchParams;
  readonly #body: Readonly<Record<string, unknown>>;

  constructor(
    running: Running,
    parameters: {
      readonly request: Request;
      readonly queue: string | undefined;
      readonly query: URLSearchParams;
      readonly body: Readonly<Record<string, unknown>>;
    },
  ) {
    this.running = running;
    this.request = parameters.request;
    this.#queue = parameters.queue;
    this.#query = parameters.query;
    this.#body = parameters.body;
  }

  /** Aborts when the client goes away. */
  get signal(): AbortSignal {
    return this.request.signal;
  }

  /** The name of the queue in the path. */
  get queue(): string {
    return this.#queue ?? "";
  }

  /** @throws {HttpError} 400 if no queue can have the name in the path. */
  checkQueue(): void {
    checkName(this.queue);
  }

  /** Opens the queue in the path. */
  async open(): Promise<InspectedQueue> {
    this.checkQueue();
    return await this.running.inspector.open(this.queue, this.signal);
  }

  /** A value of the query; undefined if it is missing. */
  value(name: string): string | undefined {
    const value = this.#query.get(name) ?? undefined;
    if (value !== undefined && value.length > MAX_VALUE) {
      throw new HttpError(400, `${name} may have at most ${MAX_VALUE} characters`);
    }
    return value;
  }

  /** The state of the wanted messages; undefined if it is missing. */
  get state(): Place | undefined {
    const state = this.value("state");
    const known = PLACE_NAMES.find((one) => one === state);
    if (known === state) return known;
    throw new HttpError(400, `state must be one of ${PLACE_NAMES.join(", ")}`);
  }

  /** A whole number of the query, both limits included; undefined if it is missing. */
  whole(name: string, rule: { readonly least: number; readonly most: number }): number | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    const number = /^\d{1,16}$/.test(value) ? Number(value) : NaN;
    if (number >= rule.least && number <= rule.most) return number;
    throw new HttpError(
      400,
      `${name} must be a whole number between ${rule.least} and ${rule.most}`,
    );
  }

  /** The page of a list that is wanted. */
  get page(): { readonly cursor: string | undefined; readonly limit: number } {
    return {
      cursor: this.value("after"),
      limit: this.whole("limit", { least: 1, most: 100 }) ?? 50,
    };
  }

  /**
   * Whether the reply is to include payloads.
   *
   * @throws {HttpError} 403 if it is, and the dashboard does not show payloads.
   */
  get wantsPayload(): boolean {
    const wants = this.value("payload") === "1";
    if (wants) this.checkPayloads();
    return wants;
  }

  /** @throws {HttpError} 403 if the dashboard does not show payloads. */
  checkPayloads(): void {
    if (this.running.settings.payloads) return;
    throw new HttpError(403, "payloads are hidden: the option payloads is not true");
  }

  /** The id or the business key of the wanted message, from the query. */
  get idOrKey(): string {
    const [id, key] = [this.value("id"), this.value("key")];
    if (id !== undefined && ids.isMessageId(id)) return id;
    if (id !== undefined) throw new HttpError(400, "id must be a message id");
    try {
      checks.checkKey(key);
      return key;
    } catch (error) {
      throw new HttpError(400, error instanceof Error ? error.message : "id or key must be given");
    }
  }

  /** The id or the business key to search all queues for, from the query. */
  get sought(): string {
    const q = this.value("q") ?? "";
    if (ids.isMessageId(q)) return q;
    try {
      checks.checkKey(q);
      return q;
    } catch (error) {
      throw new HttpError(400, (error as Error).message);
    }
  }

  /** The id of the message to change, from the body. */
  get id(): MessageId {
    const { id } = this.#body;
    if (isId(id)) return id;
    throw new HttpError(400, "id must be a message id");
  }

  /**
   * The messages to change, up to a hundred, from the body: by id or by `Sighting.place`. Undefined with `isAll`: all that
   * the query lets through.
   */
  get chosen(): readonly Chosen[] | undefined {
    const { isAll, ids: byId, places } = this.#body;
    if (isAll === true) return undefined;
    if (byId === undefined && places === undefined) {
      throw new HttpError(400, "ids, places or isAll must be given");
    }
    const named = byId === undefined ? [] : this.#few("ids");
    if (!named.every(isId)) throw new HttpError(400, "ids must be message ids");
    const spots = places === undefined ? [] : this.#few("places");
    return [...named.map((id) => ({ id })), ...spots.map((place) => ({ place }))];
  }

  #few(name: string): readonly string[] {
    const few = this.#body[name];
    const isFew = Array.isArray(few) && few.length <= MOST_AT_ONCE;
    if (isFew && few.every((one) => typeof one === "string")) return few;
    throw new HttpError(400, `${name} must be up to ${MOST_AT_ONCE} strings`);
  }

  /** What to do with the messages, from the body. */
  get verb(): Verb {
    const { verb } = this.#body;
    const known = VERBS.find((one) => one === verb);
    if (known !== undefined) return known;
    throw new HttpError(400, `verb must be one of ${VERBS.join(", ")}`);
  }

  /** The schedule to change, and what to do with it, from the body. */
  get schedule(): { readonly name: string; readonly verb: (typeof SCHEDULE_VERBS)[number] } {
    return { name: this.#nameOf("schedule"), verb: this.#verbOf(SCHEDULE_VERBS) };
  }

  /** The lane to change, and what to do with it, from the body. */
  get lane(): { readonly name: string; readonly verb: (typeof LANE_VERBS)[number] } {
    return { name: this.#nameOf("lane"), verb: this.#verbOf(LANE_VERBS) };
  }

  #nameOf(what: string): string {
    const { name } = this.#body;
    if (typeof name === "string" && name !== "" && name.length <= MAX_VALUE) return name;
    throw new HttpError(400, `name must be that of a ${what}`);
  }

  #verbOf<One extends string>(verbs: readonly One[]): One {
    const known = verbs.find((one) => one === this.#body["verb"]);
    if (known !== undefined) return known;
    throw new HttpError(400, `verb must be one of ${verbs.join(", ")}`);
  }

  /** Whether the change is only to be counted, from the body. */
  get isDry(): boolean {
    return this.#body["isDry"] === true;
  }

  /** Why messages are revoked, from the body; undefined if it is missing or empty. */
  get reason(): string | undefined {
    const { reason } = this.#body;
    if (reason === undefined || reason === null || reason === "") return undefined;
    try {
      checks.checkReason(reason);
      return reason;
    } catch (error) {
      throw new HttpError(400, (error as Error).message);
    }
  }

  /** How long the message is to wait (ms), from the body; undefined if it is missing. */
  get delay(): number | undefined {
    const { delay } = this.#body;
    if (delay === undefined || delay === null) return undefined;
    try {
      checks.checkDuration("delay", delay);
      return delay;
    } catch (error) {
      throw new HttpError(400, (error as Error).message);
    }
  }
}

function isId(value: unknown): value is MessageId {
  return typeof value === "string" && ids.isMessageId(value);
}

/** @throws {HttpError} 400 if no queue can have this name. */
export function checkName(name: string): void {
  try {
    layout.queueKeys(name);
  } catch (error) {
    throw new HttpError(
      400,
      error instanceof Error ? error.message : "no queue can have this name",
    );
  }
}

/** A payload as the page shows it. */
interface ShownPayload extends ReadablePayload {
  /** Whether the text is cut off at the end. */
  readonly isCut: boolean;
}

/** The most characters to show of a payload, by itself and in a list. */
const MAX_SHOWN = 262_144;
const MAX_SHOWN_IN_LIST = 4_096;

/** Lists leave out larger payloads (bytes): a page of them would keep this process busy. */
const MAX_BYTES_IN_LIST = 65_536;

/** A payload for a page of its own. */
export function shownPayload(bytes: Uint8Array): ShownPayload {
  return cut(readablePayload(bytes), MAX_SHOWN);
}

/** A payload for a row of a list; undefined if it is too large for one. */
export function rowPayload(bytes: Uint8Array): ShownPayload | undefined {
  return bytes.length > MAX_BYTES_IN_LIST
    ? undefined
    : cut(readablePayload(bytes), MAX_SHOWN_IN_LIST);
}

function cut({ format, text }: ReadablePayload, most: number): ShownPayload {
  return { format, text: text.slice(0, most), isCut: text.length > most };
}
