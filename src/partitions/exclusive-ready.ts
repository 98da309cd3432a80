import type { ExclusiveTaking, TakeHeld } from "../ready/exclusive-take.ts";
import type { ReadyFace } from "../ready/ready-list.ts";
import { Exclusive } from "./exclusive.ts";
import { ListTenure } from "./list-tenure.ts";
import type { Parts } from "./parts.ts";

/** The ready messages of a queue in partitions, for a handle that consumes it exclusively. */
export class ExclusiveReady implements ReadyFace, ExclusiveTaking {
  readonly #ready: ReadyFace;
  readonly #parts: Parts;
  #isRunning = false;

  constructor(ready: ReadyFace, parts: Parts) {
    this.#ready = ready;
    this.#parts = parts;
  }

  check(): void {
    if (!this.#isRunning) return;
    throw new TypeError(
      `queue "${this.#parts.name}" is exclusive: a client may subscribe to it once, and has`,
    );
  }

  async run(consume: (take: TakeHeld) => Promise<void>, stopping: AbortSignal): Promise<void> {
    this.#isRunning = true;
    const { troubles } = this.#parts.first.server;
    const exclusive = new Exclusive(this.#parts, {
      consume: (part, lease) => new ListTenure(part, lease, this.#parts, consume),
      work: { takes: troubles.work(), renewals: troubles.work() },
    });
    await new Promise<void>((resolve) => {
      if (stopping.aborted) resolve();
      else stopping.addEventListener("abort", () => resolve(), { once: true });
    });
    await exclusive.end();
    this.#isRunning = false;
  }

  checkTaking(): void {
    this.#ready.checkTaking();
  }

  checkOpen(): void {
    this.#ready.checkOpen();
  }

  /** Only a subscription takes from it. */
  take(): Promise<never> {
    return Promise.reject(this.#refusal);
  }

  /** Only a subscription takes from it. */
  pop(): Promise<never> {
    return Promise.reject(this.#refusal);
  }

  push(payloads: readonly Buffer[], signal?: AbortSignal): Promise<void> {
    return this.#ready.push(payloads, signal);
  }

  peek(signal?: AbortSignal): Promise<Buffer | undefined> {
    return this.#ready.peek(signal);
  }

  size(signal?: AbortSignal): Promise<number> {
    return this.#ready.size(signal);
  }

  readAll(signal?: AbortSignal): Promise<Buffer[]> {
    return this.#ready.readAll(signal);
  }

  clear(signal?: AbortSignal): Promise<number> {
    return this.#ready.clear(signal);
  }

  close(): Promise<void> {
    return this.#ready.close();
  }

  get #refusal(): TypeError {
    return new TypeError(
      `queue "${this.#parts.name}" is exclusive: only subscribe takes messages from it`,
    );
  }
}
