import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { HttpError } from "../http/http-error.ts";
import { Reading } from "./reading.ts";

/** A page of something, and what asks for the next. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** To be given back as `after`; undefined behind the last page. */
  readonly next: string | undefined;
}

interface Open {
  /** What is read: a cursor of one list is none of another. */
  readonly what: string;
  readonly reading: Reading<unknown>;
  usedAt: number;
}

/** How many readings are open at once. The one that was not used for the longest time gives way. */
const MOST = 32;

/** For how long one stays open that nobody uses (ms). */
const IDLE = 10 * 60_000;

/**
 * The readings that somebody pages through. A cursor names one, and a place in it; it is good for this process, and as
 * long as the reading is open.
 */
export class Readings {
  readonly #open = new Map<string, Open>();

  /**
   * A page: the first, or the one that `cursor` asks for. What `read` yields as undefined is a step that has found nothing;
   * its signal is aborted when nobody can ask for more.
   *
   * @throws {HttpError} 410 if the cursor leads nowhere any more.
   */
  async page<Item>(
    what: string,
    { cursor, limit }: { readonly cursor: string | undefined; readonly limit: number },
    read: (signal: AbortSignal) => AsyncGenerator<Item | undefined, void, void>,
  ): Promise<Page<Item>> {
    const [id = "", place = "0"] =
      cursor === undefined ? [this.#start(what, read)] : cursor.split(".");
    this.#sweep();
    const open = this.#open.get(id);
    if (open === undefined || open.what !== what || !/^\d{1,15}$/.test(place)) throw gone();
    // The one that was used last is the last in the map.
    this.#open.delete(id);
    this.#open.set(id, open);
    open.usedAt = Date.now();
    try {
      const slice = await (open.reading as Reading<Item>).slice(Number(place), limit);
      if (slice === undefined) throw gone();
      const { items, next } = slice;
      // Nobody will ask for more.
      if (next === undefined && place === "0") this.#close(id);
      return { items, next: next === undefined ? undefined : `${id}.${next}` };
    } catch (error) {
      this.#close(id);
      throw error;
    }
  }

  close(): void {
    for (const id of this.#open.keys()) this.#close(id);
  }

  #start(what: string, read: (signal: AbortSignal) => AsyncGenerator<unknown, void, void>): string {
    const id = randomBytes(9).toString("base64url");
    const stop = new AbortController();
    // One for each call that is under way.
    setMaxListeners(0, stop.signal);
    const reading = new Reading(read(stop.signal), stop);
    this.#open.set(id, { what, reading, usedAt: Date.now() });
    return id;
  }

  #sweep(): void {
    for (const [id, { usedAt }] of this.#open) {
      if (this.#open.size > MOST || Date.now() - usedAt > IDLE) this.#close(id);
    }
  }

  #close(id: string): void {
    const open = this.#open.get(id);
    this.#open.delete(id);
    // What it still reads may fail; nobody waits for it.
    void open?.reading.close().catch(() => {});
  }
}

function gone(): HttpError {
  return new HttpError(410, "this page of the list is not known any more: begin anew");
}
