/** How requests are put together. */
export interface BatchRule<Request, Answer> {
  /** Sends requests of one kind; resolves with a result for each, in the same order. */
  readonly send: (requests: readonly Request[]) => Promise<readonly Answer[]>;
  /** Requests of different kinds travel separately. Defaults to one kind. */
  readonly kindOf?: (request: Request) => string;
  /** Bytes that a request takes up. */
  readonly sizeOf: (request: Request) => number;
}

/**
 * Collects the requests that are made in one turn of the event loop, and sends them together: a
 * hundred at most, and a megabyte. It costs them no time, and Redis and Node a fraction of the work.
 * They are sent in the order in which they were made.
 */
export class TurnBatch<Request, Answer> {
  readonly #rule: BatchRule<Request, Answer>;
  #waiting: Waiting<Request, Answer>[] = [];
  readonly #sending = new Set<Promise<void>>();

  constructor(rule: BatchRule<Request, Answer>) {
    this.#rule = rule;
  }

  /** Adds a request; resolves with what was returned for it. */
  add(request: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) process.nextTick(() => this.#flush());
      this.#waiting.push({ request, resolve, reject });
    });
  }

  /** Whether anything has been sent that is not answered. */
  get isUnderWay(): boolean {
    return this.#sending.size > 0;
  }

  /** Resolves when what is on its way by now has been answered. */
  async sent(): Promise<void> {
    await Promise.all(this.#sending);
  }

  /** Resolves when everything that has been added is answered. */
  async settled(): Promise<void> {
    this.#flush();
    while (this.#sending.size > 0) await this.sent();
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (let from = 0; from < waiting.length;) {
      const end = this.#endOfBatch(waiting, from);
      this.#send(waiting.slice(from, end));
      from = end;
    }
  }

  #endOfBatch(waiting: readonly Waiting<Request, Answer>[], from: number): number {
    const { kindOf, sizeOf } = this.#rule;
    let kind: string | undefined;
    let bytes = 0;
    for (let i = from; i < waiting.length && i < from + BATCH; i++) {
      const { request } = waiting[i] as Waiting<Request, Answer>;
      bytes += sizeOf(request);
      if (i > from && (kindOf?.(request) !== kind || bytes > BATCH_BYTES)) return i;
      kind = kindOf?.(request);
    }
    return Math.min(waiting.length, from + BATCH);
  }

  #send(batch: readonly Waiting<Request, Answer>[]): void {
    const sending = this.#rule.send(batch.map(({ request }) => request)).then(
      (answers) => {
        this.#sending.delete(sending);
        batch.forEach(({ resolve }, i) => resolve(answers[i] as Answer));
      },
      (error: unknown) => {
        this.#sending.delete(sending);
        for (const { reject } of batch) reject(error);
      },
    );
    this.#sending.add(sending);
  }
}

interface Waiting<Request, Answer> {
  readonly request: Request;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Requests per script: some 300 microseconds of Redis's time. */
const BATCH = 100;
const BATCH_BYTES = 1_048_576;
