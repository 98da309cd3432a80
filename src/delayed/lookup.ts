import { areDelayed } from "../lua/delayed/are-delayed.ts";
import { getById, getByKey, type DelayedMember } from "../lua/delayed/get.ts";
import { rescheduleById, rescheduleByKey } from "../lua/delayed/reschedule.ts";
import { isMessageId, parseMessageId } from "../queue/message.ts";
import type { Queue } from "../queue/queue.ts";

/** Finds delayed messages by id or by business key, each in O(log N). */
export class Lookup {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  async get(idOrKey: string): Promise<DelayedMember | undefined> {
    return isMessageId(idOrKey)
      ? await this.#queue.read("look into", getById, { wanted: parseMessageId(idOrKey) })
      : await this.#queue.read("look into", getByKey, { wanted: idOrKey });
  }

  /** Gives a message a new deadline; returns it as it is now, or undefined if it has gone. */
  async reschedule(idOrKey: string, delay: number): Promise<DelayedMember | undefined> {
    const isId = isMessageId(idOrKey);
    const { channel } = this.#queue.keys;
    const wanted = isId ? parseMessageId(idOrKey) : idOrKey;
    const scripts = isId ? rescheduleById : rescheduleByKey;
    return await this.#queue.change("reschedule in", scripts, { channel, wanted, delay });
  }

  /** The business keys of delayed messages with this prefix, a page at a time, in no order; each once. */
  async *keysWith(prefix: string): AsyncGenerator<string[], void, void> {
    // What is special in a glob pattern.
    const pattern = `${prefix.replace(/[\\*?[\]^]/g, "\\$&")}*`;
    const seen = new Set<string>();
    let cursor = "0";
    do {
      const [next, entries] = await this.#queue.call("scan the keys of", (redis, keys) =>
        redis.hscan(keys.businessKeys, cursor, "MATCH", pattern, "COUNT", STEP),
      );
      cursor = next;
      const found = entries.filter((key, i) => i % 2 === 0 && !seen.has(key));
      for (const key of found) seen.add(key);
      yield found;
    } while (cursor !== "0");
  }

  /** Which of these business keys belong to delayed messages. */
  async delayedOf(keys: readonly string[]): Promise<string[]> {
    const delayed: string[] = [];
    for (let i = 0; i < keys.length; i += STEP) {
      const some = keys.slice(i, i + STEP);
      const rows = some.map((key) => ({ key }));
      const flags = await this.#queue.read("look into", areDelayed, {}, rows);
      delayed.push(...some.filter((_, k) => flags[k]));
    }
    return delayed;
  }
}

/** Messages per script: a few hundred microseconds of Redis's time. */
const STEP = 100;
