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
  /** Returns the requests to send now: those that still have a waiting caller. From then on they count as sent. */
  seal(): readonly Request[];
}

/**
 * Collects the requests of one turn of the event loop and sends them together, in the order in which they were made:
 * up to {@link BatchRule.most} requests and a megabyte per batch. That costs the requests no time, and spares Redis
 * and Node most of the work.
 *
 * A batch takes half of the requests of the turn and of those under way, but 25 at least. Callers that wait for their
 * results before they go on, fifty of them or a hundred, then work while Redis does, rather than in turns with it.
 */
export class TurnBatch<Request, Result> {
  readonly #rule: BatchRule<Request, Result>;
  #queued: Pending<Request, Result>[] = [];
  readonly #sending = new Map<Promise<void>, readonly Pending<Request, Result>[]>();

  constructor(rule: BatchRule<Request, Result>) {
    this.#rule = rule;
  }

  /** Adds a request; resolves with its result. */
  add(request: Request, call?: Call): Promise<Result> {
    const pending = new Pending<Request, Result>(request);
    if (call?.signal !== undefined) this.#giveUpOn(call.signal, pending);
    if (!pending.isDone) {
      if (this.#queued.length === 0) nextTick(() => this.#flush());
      this.#queued.push(pending);
    }
    return pending.promise;
  }

  /** Whether any batch is sent and not done. */
  get isUnderWay(): boolean {
    return this.#sending.size > 0;
  }

  /** Resolves when the batches that are under way now are done. */
  async sent(): Promise<void> {
    await Promise.all(this.#sending.keys());
  }

  /** Resolves when all requests are done. A request that was given up is done: no caller waits for its reply. */
  async done(): Promise<void> {
    this.#flush();
    for (;;) {
      const open = [...this.#sending.values()].flat().filter(isWanted);
      if (open.length === 0) return;
      await Promise.allSettled(open.map(({ promise }) => promise));
    }
  }

  #flush(): void {
    const queued = this.#queued.filter(isWanted);
    this.#queued = [];
    const { most = BATCH } = this.#rule;
    let count = queued.length;
    for (const batch of this.#sending.values()) count += batch.length;
    const size = Math.min(most, Math.max(LEAST, Math.ceil(count / 2)));
    for (let from = 0; from < queued.length;) {
      const end = this.#endOfBatch(queued, from, Math.min(from + size, queued.length));
      this.#send(queued.slice(from, end));
      from = end;
    }
  }

  #endOfBatch(queued: readonly Pending<Request, Result>[], from: number, end: number): number {
    const { kindOf, sizeOf } = this.#rule;
    let kind: string | undefined;
    let bytes = 0;
    for (let i = from; i < end; i++) {
      const { request } = queued[i] as Pending<Request, Result>;
      bytes += sizeOf(request);
      if (i > from && (kindOf?.(request) !== kind || bytes > BATCH_BYTES)) return i;
      kind = kindOf?.(request);
    }
    return end;
  }

  #send(batch: readonly Pending<Request, Result>[]): void {
    const { send, expiries, isMoving } = this.#rule;
    const expiry = expiries?.add(() => {
      for (const pending of batch) {
        this.#giveUp(pending, overdue(expiries.timeout, pending.isSent));
      }
    }, isMoving);
    const finish = () => {
      if (expiry !== undefined) expiries?.remove(expiry);
      this.#sending.delete(sending);
    };
    let sealed: readonly Pending<Request, Result>[] = [];
    const seal = () => {
      sealed = batch.filter(isWanted);
      for (const pending of sealed) pending.isSent = true;
      return sealed.map(({ request }) => request);
    };
    const sending = send({ endsAt: expiry?.endsAt ?? Infinity, seal }).then(
      (results) => {
        finish();
        sealed.forEach((pending, i) => pending.resolve(results[i] as Result));
      },
      (error: unknown) => {
        finish();
        for (const pending of batch) pending.reject(error);
      },
    );
    this.#sending.set(sending, batch);
  }

  #giveUpOn(signal: AbortSignal, pending: Pending<Request, Result>): void {
    const giveUp = () => this.#giveUp(pending, aborted(signal, pending.isSent));
    if (signal.aborted) giveUp();
    else pending.onDone = onAbort(signal, giveUp);
  }

  #giveUp(pending: Pending<Request, Result>, why: UnansweredError): void {
    if (!pending.isDone) pending.reject(this.#rule.giveUp(why));
  }
}

/** A request and the promise of its result. It gets one result; later ones are dropped. */
class Pending<Request, Result> {
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
/** Requests that may all be in one batch: a script has its own price. */
const LEAST = 25;
const BATCH_BYTES = 1_048_576;
