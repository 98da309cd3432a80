import { AsyncLocalStorage } from "node:async_hooks";
import { handlings, type HandleEvent } from "../../../observe/events.ts";
import { REAL } from "../../../time/runtime.ts";

/** A handler that runs. */
interface Running {
  readonly queue: string;
  /** On the real clock. */
  readonly startedAt: number;
  /** How many sleeps on the virtual clock it waits for. */
  sleeps: number;
}

/** The handlers that run in this process, as the diagnostics channels tell. */
export class Handlers {
  readonly #running = new Map<HandleEvent, Running>();
  readonly #current = new AsyncLocalStorage<HandleEvent>();
  readonly #onEnd: (event: HandleEvent) => void;
  readonly #onSleep: () => void;
  #changes = 0;

  /** `onSleep` is called when one begins to wait for virtual time: it holds its messages for a while. */
  constructor(onSleep: () => void) {
    this.#onSleep = onSleep;
    handlings.start.bindStore(this.#current, (event) => {
      this.#running.set(event, { queue: event.queue, startedAt: REAL.now(), sleeps: 0 });
      this.#changes++;
      return event;
    });
    this.#onEnd = (event) => {
      this.#running.delete(event);
      this.#changes++;
    };
    handlings.asyncEnd.subscribe(this.#onEnd as (event: unknown) => void);
  }

  /** Grows whenever a handler begins or ends, falls asleep or wakes up. */
  get changes(): number {
    return this.#changes;
  }

  /** Whether the caller is a handler. */
  get isInside(): boolean {
    return this.#current.getStore() !== undefined;
  }

  /** The handlers that run and do not wait for virtual time, in words; undefined if there are none. */
  get awake(): string | undefined {
    const awake = [...this.#running.values()].filter(({ sleeps }) => sleeps === 0);
    if (awake.length === 0) return undefined;
    return awake
      .map(({ queue, startedAt }) => {
        const seconds = ((REAL.now() - startedAt) / 1000).toFixed(1);
        return `a handler of queue ${JSON.stringify(queue)}, which has run for ${seconds} s of real time`;
      })
      .join(", and for ");
  }

  /** The caller begins to wait for virtual time. Returns what to call when it has waited. */
  fallAsleep(): () => void {
    const event = this.#current.getStore();
    const running = event && this.#running.get(event);
    if (running === undefined) return () => {};
    running.sleeps++;
    this.#changes++;
    this.#onSleep();
    let isAsleep = true;
    return () => {
      if (!isAsleep) return;
      isAsleep = false;
      running.sleeps--;
      this.#changes++;
    };
  }

  close(): void {
    handlings.start.unbindStore(this.#current);
    handlings.asyncEnd.unsubscribe(this.#onEnd as (event: unknown) => void);
    this.#current.disable();
  }
}
