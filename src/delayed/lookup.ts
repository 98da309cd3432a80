import { areHeld, get, type DueMember } from "../lua/delayed/get.ts";
import { reschedule } from "../lua/delayed/reschedule.ts";
import type { Call } from "../queue/call.ts";
import { isMessageId, whichOf } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import { PAGE_BYTES } from "./order-reader.ts";
import type { Due } from "../queue/offering.ts";

/**
 * Finds delayed and retrying messages by id or business key, in O(log N) each, and by a prefix of their keys, which reads
 * the whole index. Also gives a message that it finds a new deadline.
 */
export class Lookup {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  async get(idOrKey: string, call?: Call): Promise<DueMember | undefined> {
    const options = { ...call, rows: [whichOf(idOrKey)] };
    const found = await this.#queue.read("look into", get, { maxBytes: PAGE_BYTES }, options);
    return found.messages[0];
  }

  /** Gives a message a new deadline; returns it as it is then, or undefined if it is neither delayed nor retrying. */
  async reschedule(idOrKey: string, due: Due | "now", call?: Call): Promise<DueMember | undefined> {
    const args = {
      channel: this.#queue.keys.channel,
      ...whichOf(idOrKey),
      delay: "",
      deadline: "",
      ...(due !== "now" && due),
    };
    return await this.#queue.change("reschedule in", reschedule, args, call);
  }

  /** The messages whose business keys have this prefix, each once, in no particular order. */
  async *withPrefix(prefix: string, call?: Call): AsyncGenerator<DueMember, void, void> {
    for await (const keys of this.keysWith(prefix, call)) {
      for (let i = 0; i < keys.length;) {
        const rows = keys.slice(i, i + MESSAGES_STEP).map((key) => ({ id: "", key }));
        const maxBytes = PAGE_BYTES;
        const page = await this.#queue.read("look into", get, { maxBytes }, { ...call, rows });
        yield* page.messages;
        i += page.lookedUp;
      }
    }
  }

  /**
   * The business keys in the index with this prefix, each once, a page at a time, in no particular order. Reads the
   * whole index. The message of an entry may be gone; see {@link heldOf}.
   */
  async *keysWith(prefix: string, call?: Call): AsyncGenerator<string[], void, void> {
    // Escape the characters that are special in a glob pattern.
    const pattern = `${prefix.replace(/[\\*?[\]^]/g, "\\$&")}*`;
    const seen = new Set<string>();
    let cursor = "0";
    do {
      const [next, entries] = await this.#queue.call(
        "scan the keys of",
        (redis, keys) => redis.hscan(keys.businessKeys, cursor, "MATCH", pattern, "COUNT", STEP),
        call,
      );
      cursor = next;
      // A key that looks like an id cannot come from an offer. Callers would take it for an id, so leave it out.
      const isNew = (key: string) => !seen.has(key) && !isMessageId(key);
      const found = entries.filter((key, i) => i % 2 === 0 && isNew(key));
      for (const key of found) seen.add(key);
      yield found;
    } while (cursor !== "0");
  }

  /** Returns those of the business keys that delayed or retrying messages hold. */
  async heldOf(keys: readonly string[], call?: Call): Promise<string[]> {
    const held: string[] = [];
    for (let i = 0; i < keys.length; i += STEP) {
      const some = keys.slice(i, i + STEP);
      const rows = some.map((key) => ({ key }));
      const flags = await this.#queue.read("look into", areHeld, {}, { ...call, rows });
      held.push(...some.filter((_, k) => flags[k]));
    }
    return held;
  }
}

/** Keys per script: a few hundred microseconds of Redis's time. */
const STEP = 100;

/** Keys per script that returns whole messages. */
const MESSAGES_STEP = 20;
