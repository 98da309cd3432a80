import type { ExclusiveTaking, TakeHeld } from "../../ready/exclusive-take.ts";
import type { ReadyFace } from "../../ready/ready-list.ts";
import type { Exclusive } from "./exclusive.ts";
import { ListTenure } from "./list-tenure.ts";
import type { Parts } from "../parts/parts.ts";

/** The ready messages of a partitioned queue, for a handle that consumes the queue exclusively. */
export class ExclusiveReady implements ReadyFace, ExclusiveTaking {
  readonly #ready: ReadyFace;
  readonly #parts: Parts;
  readonly #exclusive: Exclusive;

  constructor(ready: ReadyFace, parts: Parts, exclusive: Exclusive) {
    this.#ready = ready;
    this.#parts = parts;
    this.#exclusive = exclusive;
  }

  check(): void {
    this.#exclusive.check();
  }

  run(consume: (take: TakeHeld) => Promise<void>, stopping: AbortSignal): Promise<void> {
    return this.#exclusive.run(
      (part, lease) => new ListTenure(part, lease, this.#parts, consume),
      stopping,
    );
  }

  checkTaking(): void {
    this.#ready.checkTaking();
  }

  checkOpen(): void {
    this.#ready.checkOpen();
  }

  take(): Promise<never> {
    return Promise.reject(this.#exclusive.refusal);
  }

  pop(): Promise<never> {
    return Promise.reject(this.#exclusive.refusal);
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
}
