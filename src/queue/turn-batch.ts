import type { UnansweredError } from "../failure.ts";
import type { Call } from "./call.ts";
import { aborted, overdue } from "../redis/call.ts";
import { onAbort } from "../time/abort.ts";
import type { Expiries } from "../time/expiries.ts";
import { nextTick } from "../time/runtime.ts";

/** How requests are batched. */
export interface BatchRule<Request, Result> {
  /** Sends a batch; returns a result for each request that it sealed, in the same order. */
  readonly send: (batch: RequestBatch<Request>) => Promise<readonly Result[]>;
  /** Requests of different kinds are never in one batch. Defaults to a single kind. */
  readonly kindOf?: (request: Request) => string;
  /** The largest number of requests in a batch. Defaults to 100. */
  readonly most?: number;
  /** The size of a request in bytes. */
  readonly sizeOf: (request: Request) => number;
  /** The time limit of a request. Defaults to none, for a `send` with its own limit. */
  readonly expiries?: Expiries;
  /** Whether the connection that carries the requests gets on: then their time limit is put off. */
  readonly isMoving?: () => boolean;
  /** Makes the error of a request whose time is over, or which its caller has aborted. */
  readonly giveUp: (why: UnansweredError) => unknown;
}

/** Requests that are sent together. */
export interface RequestBatch<Request> {
  /** When the time of the requests is over (`networkTime.now()`). */
  readonly endsAt: number;
  /** Returns the requests to send now: those that somebody still waits for. From then on they count as sent. */
  seal(): readonly Request[];
}

/**
 * Collects the requests of one turn of the event loop and sends them together, in the order in which they were made:
 * up to {@link BatchRule.most} requests and a megabyte per batch. That costs the requests no time, and spares Redis
 * and Node most of the work.
 *
 * More than fifty go in two batches at least. Callers that wait for their results before they go on, a hundred of them,
 * then work while Redis does, rather than in turns with it.
 */
export class TurnBatch<Request, Result> {
  readonly #rule: BatchRule<Request, Result>;
  #waiting: Waiting<Request, Result>[] = [];
  readonly #sending = new Map<Promise<void>, readonly Waiting<Request, Result>[]>();

  constructor(rule: BatchRule<Request, Result>) {
    this.#rule = rule;
  }

  /** Adds a request; resolves with its result. */
  add(request: Request, call?: Call): Promise<Result> {
    const waiting = new Waiting<Request, Result>(request);
    if (call?.signal !== undefined) this.#giveUpOn(call.signal, waiting);
    if (!waiting.isDone) {
      if (this.#waiting.length === 0) nextTick(() => this.#flush());
      this.#waiting.push(waiting);
    }
    return waiting.promise;
  }

  /** Whether any batch is sent and not done. */
  get isUnderWay(): boolean {
    return this.#sending.size > 0;
  }

  /** Resolves when the batches that are under way now are done. */
  async sent(): Promise<void> {
    await Promise.all(this.#sending.keys());
  }

  /** Resolves when all requests are done. One that was given up is done: nobody waits for its reply. */
  async done(): Promise<void> {
    this.#flush();
    for (;;) {
      const open = [...this.#sending.values()].flat().filter(isWanted);
      if (open.length === 0) return;
      await Promise.allSettled(open.map(({ promise }) => promise));
    }
  }

  #flush(): void {
    const waiting = this.#waiting.filter(isWanted);
    this.#waiting = [];
    const { most = BATCH } = this.#rule;
    const size = Math.min(most, Math.max(HALF, Math.ceil(waiting.length / 2)));
    for (let from = 0; from < waiting.length;) {
      const end = this.#endOfBatch(waiting, from, Math.min(from + size, waiting.length));
      this.#send(waiting.slice(from, end));
      from = end;
    }
  }

  #endOfBatch(waiting: readonly Waiting<Request, Result>[], from: number, end: number): number {
    const { kindOf, sizeOf } = this.#rule;
    let kind: string | undefined;
    let bytes = 0;
    for (let i = from; i < end; i++) {
      const { request } = waiting[i] as Waiting<Request, Result>;
      bytes += sizeOf(request);
      if (i > from && (kindOf?.(request) !== kind || bytes > BATCH_BYTES)) return i;
      kind = kindOf?.(request);
    }
    return end;
  }

  #send(batch: readonly Waiting<Request, Result>[]): void {
    const { send, expiries, isMoving } = this.#rule;
    const expiry = expiries?.add(() => {
      for (const waiting of batch) {
        this.#giveUp(waiting, overdue(expiries.timeout, waiting.isSent));
      }
    }, isMoving);
    const finish = () => {
      if (expiry !== undefined) expiries?.remove(expiry);
      this.#sending.delete(sending);
    };
    let sealed: readonly Waiting<Request, Result>[] = [];
    const seal = () => {
      sealed = batch.filter(isWanted);
      for (const waiting of sealed) waiting.isSent = true;
      return sealed.map(({ request }) => request);
    };
    const sending = send({ endsAt: expiry?.endsAt ?? Infinity, seal }).then(
      (results) => {
        finish();
        sealed.forEach((waiting, i) => waiting.resolve(results[i] as Result));
      },
      (error: unknown) => {
        finish();
        for (const waiting of batch) waiting.reject(error);
      },
    );
    this.#sending.set(sending, batch);
  }

  #giveUpOn(signal: AbortSignal, waiting: Waiting<Request, Result>): void {
    const giveUp = () => this.#giveUp(waiting, aborted(signal, waiting.isSent));
    if (signal.aborted) giveUp();
    else waiting.onDone = onAbort(signal, giveUp);
  }

  #giveUp(waiting: Waiting<Request, Result>, why: UnansweredError): void {
    if (!waiting.isDone) waiting.reject(this.#rule.giveUp(why));
  }
}

/** A request and the promise of its result. It gets one result; later ones are dropped. */
class Waiting<Request, Result> {
  readonly request: Request;
  readonly promise: Promise<Result>;
  isSent = false;
  isDone = false;
  onDone: (() => void) | undefined;
  #resolve!: (result: Result) => void;
  #reject!: (error: unknown) => void;

  constructor(request: Request) {
    this.request = request;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  resolve(result: Result): void {
    this.#finish();
    this.#resolve(result);
  }

  reject(error: unknown): void {
    this.#finish();
    this.#reject(error);
  }

  #finish(): void {
    this.isDone = true;
    this.onDone?.();
  }
}

function isWanted({ isDone }: { readonly isDone: boolean }): boolean {
  return !isDone;
}

/** Requests per batch: about 300 us of Redis's time. */
const BATCH = 100;
/** Requests of one turn that may all be in one batch. */
const HALF = 50;
const BATCH_BYTES = 1_048_576;
