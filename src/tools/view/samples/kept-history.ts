import { causeOf, past, type RedisClient } from "../../../inside.ts";
import type { Inspector } from "../inspector.ts";
import { lateOf, type QueueRow } from "./history.ts";

const MINUTE = 60_000;

/** The most queues whose past is kept. All of them take 13 MB. */
const MAX_QUEUES = 1000;

/** How many queues are asked about at once: their commands leave in one packet. */
const AT_ONCE = 50;

/**
 * The past of the queues as Redis keeps it: each minute of a day, and each of 90 days. All dashboards of a Redis share it;
 * the first round of a minute writes it.
 */
export class KeptHistory {
  readonly #inspector: Inspector;
  readonly #isOn: boolean;
  /** The minute that this process noted last. */
  #minute = 0;
  #refusal: string | undefined;

  constructor(inspector: Inspector, isOn: boolean) {
    this.#inspector = inspector;
    this.#isOn = isOn;
  }

  /** Why this dashboard writes nothing; undefined if it writes. */
  get whyNot(): string | undefined {
    return this.#isOn ? this.#refusal : "this dashboard keeps no history in Redis";
  }

  /**
   * Notes the numbers of queues as they were at `at` (epoch ms on the server's clock), unless this was done in that minute.
   * Never rejects: after a refusal it goes on with the next minute.
   */
  async note(at: number, all: () => readonly QueueRow[]): Promise<void> {
    const minute = Math.floor(at / MINUTE);
    if (!this.#isOn || minute === this.#minute) return;
    this.#minute = minute;
    const rows = all()
      .filter(({ error }) => error === undefined)
      .slice(0, MAX_QUEUES);
    try {
      for (const some of batches(rows)) {
        await this.#ask((redis) =>
          Promise.all(some.map((row) => past.noteNumbers(redis, row.name, notedOf(row)))),
        );
      }
      this.#refusal = undefined;
    } catch (error) {
      this.#refusal = `Redis ${causeOf(error)?.what ?? "refused to store it"}`;
    }
  }

  /**
   * Whether another dashboard has noted the numbers of this minute: those of the last of these queues. `now` is the time on
   * the server's clock (epoch ms).
   */
  async isNoted(names: readonly string[], now: number): Promise<boolean> {
    const last = names.slice(0, MAX_QUEUES).at(-1);
    if (last === undefined) return false;
    const at = await this.#ask((redis) => past.lastNotedAt(redis, last)).catch(() => undefined);
    return at !== undefined && at + MINUTE > now;
  }

  /** Reads the past of queues. A queue whose past cannot be read has none. */
  async read(
    names: readonly string[],
    range: past.PastRange,
  ): Promise<ReadonlyMap<string, past.PastNumbers>> {
    const found = new Map<string, past.PastNumbers>();
    const read = async (redis: RedisClient, name: string) => {
      const numbers = await past.readPast(redis, name, range).catch(() => undefined);
      if (numbers !== undefined) found.set(name, numbers);
    };
    for (const some of batches(names)) {
      const readAll = (redis: RedisClient) => Promise.all(some.map((name) => read(redis, name)));
      await this.#ask(readAll).catch(() => undefined);
    }
    return found;
  }

  /** On the first server, where a queue without partitions is: so its past stays together if it gets partitions. */
  async #ask<Reply>(send: (redis: RedisClient) => Promise<Reply>): Promise<Reply> {
    return await this.#inspector.servers[0].ask(send);
  }
}

function notedOf(row: QueueRow): past.NotedNumbers {
  const { delayed, ready, inFlight, retries, dead, finished } = row;
  return { delayed, ready, inFlight, retries, dead, finished, late: lateOf(row) };
}

function* batches<Item>(all: readonly Item[]): Generator<readonly Item[]> {
  for (let i = 0; i < all.length; i += AT_ONCE) yield all.slice(i, i + AT_ONCE);
}
