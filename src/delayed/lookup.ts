import { arePending, getById, getByKey } from "../lua/delayed/get.ts";
import {
  rescheduleById,
  rescheduleByIdExact,
  rescheduleByKey,
  rescheduleByKeyExact,
} from "../lua/delayed/reschedule.ts";
import type { PageMessage } from "../lua/delayed/read.ts";
import { isMessageId, parseMessageId } from "../queue/message.ts";
import type { QueueContext } from "../client/open-queue.ts";

/** Delayed messages by id or by business key, each in O(log N). */
export class PendingMessages {
  readonly #queue: QueueContext;

  constructor(queue: QueueContext) {
    this.#queue = queue;
  }

  async get(idOrKey: string): Promise<PageMessage | undefined> {
    const [script, target] = isMessageId(idOrKey)
      ? [getById, parseMessageId(idOrKey)]
      : [getByKey, idOrKey];
    return await this.#queue.read("look into", script, { target });
  }

  /** Cancels messages; answers for each whether it was there. */
  cancel(idsOrKeys: readonly string[]): Promise<boolean[]> {
    this.#queue.checkOpen();
    return Promise.all(idsOrKeys.map((target) => this.#queue.cancels.add(target)));
  }

  async reschedule(idOrKey: string, delay: number): Promise<PageMessage | undefined> {
    const { isExact, keys } = this.#queue;
    const { channel } = keys;
    if (isMessageId(idOrKey)) {
      const script = isExact ? rescheduleByIdExact : rescheduleById;
      const target = parseMessageId(idOrKey);
      return await this.#queue.change("reschedule in", script, { channel, target, delay });
    }
    const script = isExact ? rescheduleByKeyExact : rescheduleByKey;
    return await this.#queue.change("reschedule in", script, { channel, target: idOrKey, delay });
  }

  /** The pending keys with this prefix, a page at a time, in no order; each once. */
  async *keysWith(prefix: string): AsyncGenerator<string[], void, void> {
    const { connections, keys } = this.#queue;
    // What is special in a glob pattern.
    const pattern = `${prefix.replace(/[\\*?[\]^]/g, "\\$&")}*`;
    const seen = new Set<string>();
    let cursor = "0";
    do {
      const [next, entries] = await this.#queue.call("scan the keys of", () =>
        connections.commands.hscan(keys.index, cursor, "MATCH", pattern, "COUNT", STEP),
      );
      cursor = next;
      const found = entries.filter((key, i) => i % 2 === 0 && !seen.has(key));
      for (const key of found) seen.add(key);
      yield found;
    } while (cursor !== "0");
  }

  /** Which of these keys are pending. */
  async pendingOf(keys: readonly string[]): Promise<string[]> {
    const pending: string[] = [];
    for (let i = 0; i < keys.length; i += STEP) {
      const some = keys.slice(i, i + STEP);
      const flags = await this.#queue.read("look into", arePending, {}, some);
      pending.push(...some.filter((_, k) => flags[k]));
    }
    return pending;
  }
}

/** Messages per script: a few hundred microseconds of Redis's time. */
const STEP = 100;
