import { DelayedQueue } from "../../src/handles/delayed-queue.ts";
import {
  ClosedError,
  OfferManyError,
  type FlowOptions,
  type OnlyIf,
  type ReliableQueue,
  type Revoked,
} from "../../src/index.ts";
import type { Ledger } from "./ledger.ts";
import type { SimProcess } from "./sim.ts";

/** What a world tells of an offer. */
export interface OfferTerms {
  readonly key?: string;
  readonly partitionKey?: string;
  readonly onDuplicate?: "ignore" | "replace" | "update";
  readonly maxWait?: number;
  readonly onlyIf?: OnlyIf;
  readonly deliverWithin?: number;
  readonly lane?: string;
  readonly priority?: number;
}

/** Why an offer was not made. */
const NOTHING_TO_CANCEL = new ClosedError("what the offer was to replace");

/** What one process asks of the delayed side of a queue. Each call is noted, and none rejects. */
export class Clerk {
  readonly process: SimProcess;
  readonly queue: DelayedQueue<number> | ReliableQueue<number>;
  readonly #ledger: Ledger;
  /** An offer by a handle of a group creates that group. */
  readonly #group: { readonly group?: string };

  constructor(
    ledger: Ledger,
    process: SimProcess,
    queue: DelayedQueue<number> | ReliableQueue<number>,
  ) {
    this.#ledger = ledger;
    this.process = process;
    this.queue = queue;
    this.#group = "group" in queue ? { group: queue.group } : {};
  }

  /** Offers a new message. */
  async offer(delay: number, terms: OfferTerms = {}) {
    const n = this.#ledger.nextMessage();
    const offer = () => this.queue.offer(n, delay, terms);
    const result = await this.#call("offer", { ...terms, ...this.#group, n, delay }, offer);
    return result && { ...result, n };
  }

  /** Offers a new message for an instant (epoch ms). */
  async offerAt(instant: number, terms: OfferTerms = {}) {
    const n = this.#ledger.nextMessage();
    const offer = () => this.queue.offerAt(n, instant, terms);
    const result = await this.#call("offer", { ...terms, ...this.#group, n, instant }, offer);
    return result && { ...result, n };
  }

  /** Offers new messages in one call; gives up after so many milliseconds. */
  async offerMany(all: readonly (OfferTerms & { readonly delay: number })[], patience?: number) {
    const controller = new AbortController();
    const { signal } = controller;
    if (patience !== undefined) {
      void this.#ledger.sim.sleep(patience).then(() => controller.abort());
    }
    const messages = all.map((one) => ({ ...one, payload: this.#ledger.nextMessage() }));
    const parts = messages.map(({ payload, ...terms }) => {
      const args = { ...terms, ...this.#group, n: payload, isImpatient: patience !== undefined };
      return this.#ledger.begin(this.process, "offer", args);
    });
    try {
      const results = await this.process.run(() => this.queue.offerMany(messages, { signal }));
      for (const [i, result] of results.entries()) parts[i]?.answer({ ...result });
      return results.map((result, i) => ({ ...result, n: messages[i]?.payload }));
    } catch (error) {
      for (const [i, part] of parts.entries()) {
        const result = error instanceof OfferManyError ? error.results[i] : error;
        if (result instanceof Error || result === undefined) part.fail(result);
        else part.answer({ ...(result as object) });
      }
      return [];
    }
  }

  async cancel(target: string, partitionKey?: string) {
    const hint = partitionKey === undefined ? {} : { partitionKey };
    return await this.#call("cancel", { target, ...hint }, () => this.queue.cancel(target, hint));
  }

  /** Cancels a message, and offers a new one in its place. */
  async exchange(target: string, delay: number, terms: Pick<OfferTerms, "key"> = {}) {
    const n = this.#ledger.nextMessage();
    const cancel = this.#ledger.begin(this.process, "cancel", { target });
    const args = { ...terms, ...this.#group, n, delay };
    const offer = this.#ledger.begin(this.process, "offer", args);
    try {
      const next = { ...terms, payload: n, delay };
      const { cancelled, offered } = await this.process.run(() =>
        (this.queue as DelayedQueue<number>).cancel(target, { offer: next }),
      );
      cancel.answer(cancelled);
      if (offered === undefined) offer.fail(NOTHING_TO_CANCEL);
      else offer.answer({ ...offered });
    } catch (error) {
      cancel.fail(error);
      offer.fail(error);
    }
  }

  async reschedule(target: string, delay: number, partitionKey?: string) {
    const hint = partitionKey === undefined ? {} : { partitionKey };
    return await this.#call("reschedule", { target, delay, ...hint }, () =>
      this.queue.reschedule(target, delay, hint),
    );
  }

  async promote(target: string) {
    return await this.#call("promote", { target }, () => this.queue.promote(target));
  }

  async get(target: string) {
    return await this.#ledger.call(
      this.process,
      "get",
      { target },
      () => this.queue.get(target),
      (message) => message?.payload ?? null,
    );
  }

  /**
   * Revokes a message of a reliable queue, and waits for so many milliseconds until its handlers have ended. Returns whether it
   * has answered.
   */
  async revoke(target: string, wait = 0, partitionKey?: string): Promise<boolean> {
    const { queue } = this;
    if (!("revoke" in queue)) return false;
    const hint = partitionKey === undefined ? {} : { partitionKey };
    const answer = await this.#ledger.call(
      this.process,
      "revoke",
      { target, timeout: wait, ...hint },
      () => queue.revoke(target, { wait, reason: "not wanted", ...hint }),
      whereOf,
    );
    return answer !== undefined;
  }

  /** Looks where a message of a reliable queue is. */
  async stage(target: string, partitionKey?: string) {
    const { queue } = this;
    if (!("stage" in queue)) return;
    const hint = partitionKey === undefined ? {} : { partitionKey };
    const look = () => queue.stage(target, hint);
    await this.#ledger.call(this.process, "stage", { target, ...hint }, look, whereOf);
  }

  async has(target: string) {
    return await this.#call("has", { target }, () => this.queue.has(target));
  }

  /** Puts a new message among those that are ready. */
  async put() {
    const n = this.#ledger.nextMessage();
    const queue = this.process.run(() =>
      this.process.line.getBlockingQueue<number>(this.queue.name),
    );
    await this.#call("offer", { n, delay: 0, isPut: true }, () => queue.put(n));
  }

  /** Cancels what has one of these keys, all of which begin with the prefix. */
  async cancelWhere(prefix: string, keys: readonly string[]) {
    const parts = keys.map((target) => this.#ledger.begin(this.process, "cancel", { target }));
    try {
      const found = await this.process.run(() => this.queue.cancelWhere({ prefix }));
      for (const [i, part] of parts.entries()) part.answer(found.keys.includes(keys[i] as string));
    } catch (error) {
      for (const part of parts) part.fail(error);
    }
  }

  /** Takes out what was offered first, due or not. */
  async dropDelayed(limit: number) {
    const { queue } = this;
    if (!(queue instanceof DelayedQueue)) return;
    await this.#call("dropDelayed", { limit }, async () => {
      const all = await queue.insertionOrder.poll(limit);
      for (const n of all) this.#ledger.deliver(this.process, n, { isEarly: true });
      return all.length;
    });
  }

  /** Takes out a message by its payload. */
  async remove(n: number, target: string) {
    const { queue } = this;
    if (!(queue instanceof DelayedQueue)) return;
    await this.#call("cancel", { target, n }, () => queue.insertionOrder.remove(n));
  }

  /** Drops all delayed messages. */
  async clear() {
    await this.#call("clear", {}, () => this.queue.clear());
  }

  /** Looks at all delayed messages, in the order of the offers or of the deadlines. */
  async view(how: "readAll" | "soonest") {
    const { queue } = this;
    await this.#call("view", { how }, async () => {
      if (how === "readAll" && queue instanceof DelayedQueue)
        return await queue.insertionOrder.readAll();
      const all: number[] = [];
      for await (const { payload } of queue.soonest()) all.push(payload);
      return all;
    });
  }

  async setFlow(flow: FlowOptions) {
    await this.#call("setFlow", { flow }, async () => {
      await this.queue.flow.set(flow);
      return true;
    });
  }

  /** Lets a lane rest. Where the flow has no lanes any more, this is refused. */
  async hold(lane: string, delay: number) {
    await this.#call("hold", { lane, delay }, async () => {
      try {
        await this.queue.flow.hold(lane, delay);
        return true;
      } catch (error) {
        if (error instanceof TypeError) return false;
        throw error;
      }
    });
  }

  /** Returns whether it has worked. */
  async clearFlow(): Promise<boolean> {
    const isDone = await this.#call("clearFlow", {}, async () => {
      await this.queue.flow.clear();
      return true;
    });
    return isDone === true;
  }

  async pause() {
    await this.#call("pause", {}, () => this.queue.pause());
  }

  /** Returns whether it has worked. */
  async resume(): Promise<boolean> {
    const isDone = await this.#call("resume", {}, async () => {
      await this.queue.resume();
      return true;
    });
    return isDone === true;
  }

  async #call<Result>(verb: string, args: object, make: () => Promise<Result>) {
    return await this.#ledger.call(this.process, verb, { ...args }, make);
  }
}

/** What is noted of where a message was; null if it was nowhere. */
function whereOf({ stage, places, hasEnded }: Revoked) {
  if (stage === "gone" && places.length === 0 && hasEnded) return null;
  return { stage, places, hasEnded };
}
