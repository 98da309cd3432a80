import type { InspectedQueue, Inspector } from "../../inspect/inspector.ts";
import { checkKey } from "../../queue/checks.ts";
import { queueKeys } from "../../queue/keys.ts";
import { isMessageId, type MessageId } from "../../queue/message/message.ts";
import type { EventStreams } from "./event-streams.ts";
import { HttpError } from "../http/http-error.ts";
import type { DashboardSettings } from "../http/options.ts";
import type { QueueView } from "../readings/queue-view.ts";
import type { Readings } from "../readings/readings.ts";
import type { Sampler } from "../readings/sampler.ts";

/** What a dashboard has running. */
export interface Running {
  readonly settings: DashboardSettings;
  readonly inspector: Inspector;
  readonly sampler: Sampler;
  readonly view: QueueView;
  readonly readings: Readings;
  readonly streams: EventStreams;
}

/** How long a value in a query may be: a key has 200 bytes at most, and a cursor is short. */
const MAX_VALUE = 1000;

/** A call of the API: what is asked, and what it is asked of. */
export class Call {
  readonly running: Running;
  readonly request: Request;
  readonly #queue: string | undefined;
  readonly #query: URLSearchParams;
  readonly #body: Readonly<Record<string, unknown>>;

  constructor(
    running: Running,
    asked: {
      readonly request: Request;
      readonly queue: string | undefined;
      readonly query: URLSearchParams;
      readonly body: Readonly<Record<string, unknown>>;
    },
  ) {
    this.running = running;
    this.request = asked.request;
    this.#queue = asked.queue;
    this.#query = asked.query;
    this.#body = asked.body;
  }

  /** Aborted when nobody waits for the response any more. */
  get signal(): AbortSignal {
    return this.request.signal;
  }

  /** The queue that the path names. */
  get queue(): string {
    return this.#queue ?? "";
  }

  /** @throws {HttpError} if the path names what cannot be a queue. */
  checkQueue(): void {
    checkName(this.queue);
  }

  /** Opens the queue that the path names. */
  async open(): Promise<InspectedQueue> {
    this.checkQueue();
    return await this.running.inspector.open(this.queue, this.signal);
  }

  /** A value of the query; undefined if it is not given. */
  value(name: string): string | undefined {
    const value = this.#query.get(name) ?? undefined;
    if (value !== undefined && value.length > MAX_VALUE) {
      throw new HttpError(400, `${name} has at most ${MAX_VALUE} characters`);
    }
    return value;
  }

  /** A whole number of the query. */
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

  /** Which part of a list is asked for. */
  get part(): { readonly cursor: string | undefined; readonly limit: number } {
    return {
      cursor: this.value("after"),
      limit: this.whole("limit", { least: 1, most: 100 }) ?? 50,
    };
  }

  /** Whether payloads are asked for, which may not be shown. */
  get wantsPayload(): boolean {
    const wants = this.value("payload") === "1";
    if (wants && !this.running.settings.payloads) {
      throw new HttpError(403, "payloads are not shown: the option payloads is not true");
    }
    return wants;
  }

  /** The id or the key of the message that is looked for. */
  get idOrKey(): string {
    const [id, key] = [this.value("id"), this.value("key")];
    if (id !== undefined && isMessageId(id)) return id;
    if (id !== undefined) throw new HttpError(400, "id must be the id of a message");
    try {
      checkKey(key);
      return key;
    } catch (error) {
      throw new HttpError(400, error instanceof Error ? error.message : "give id or key");
    }
  }

  /** The id of the message that is to be changed. */
  get id(): MessageId {
    const { id } = this.#body;
    if (typeof id === "string" && isMessageId(id)) return id;
    throw new HttpError(400, "id must be the id of a message");
  }

  /** The id of the message that is to be changed, or `"all"`. */
  get idOrAll(): MessageId | "all" {
    return this.#body["id"] === "all" ? "all" : this.id;
  }

  /** For how long the message is to wait (ms). */
  get delay(): number | undefined {
    const { delay } = this.#body;
    if (delay === undefined || delay === null) return undefined;
    if (typeof delay === "number" && delay >= 0 && delay <= MAX_DELAY) return delay;
    throw new HttpError(400, `delay must be a number of milliseconds between 0 and ${MAX_DELAY}`);
  }
}

/** @throws {HttpError} if nothing with this name can be a queue. */
export function checkName(name: string): void {
  try {
    queueKeys(name);
  } catch (error) {
    throw new HttpError(400, error instanceof Error ? error.message : "that names no queue");
  }
}

/** A thousand years. */
const MAX_DELAY = 31_556_952_000_000;
