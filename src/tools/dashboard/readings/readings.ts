import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { HttpError } from "../http/http-error.ts";
import { Reading } from "./reading.ts";

/** A page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** The cursor of the next page; undefined on the last page. */
  readonly next: string | undefined;
}

interface OpenReading {
  /** The name of the list: cursors of one list are refused for another. */
  readonly list: string;
  readonly reading: Reading<unknown>;
  usedAt: number;
}

/** The most readings open at once. Beyond that the least recently used one is closed. */
const MAX_OPEN = 32;

/** How long an unused reading stays open (ms). */
const MAX_IDLE = 10 * 60_000;

/**
 * The readings that users page through. A cursor names a reading and a position in it. It is valid in this process
 * only, and while the reading is open.
 */
export class Readings {
  readonly #open = new Map<string, OpenReading>();

  /**
   * Returns a page of a list: the first, or the one at `cursor`. `read` starts the list; see {@link Reading} for what
   * it yields. Its signal aborts when the reading is closed.
   *
   * @throws {HttpError} 410 if the cursor is no longer valid.
   */
  async page<Item>(
    list: string,
    { cursor, limit }: { readonly cursor: string | undefined; readonly limit: number },
    read: (signal: AbortSignal) => AsyncGenerator<Item | undefined, void, void>,
  ): Promise<Page<Item>> {
    const [id = "", position = "0"] =
      cursor === undefined ? [this.#start(list, read)] : cursor.split(".");
    this.#sweep();
    const open = this.#open.get(id);
    if (open === undefined || open.list !== list || !/^\d{1,15}$/.test(position)) throw gone();
    // Keeps the map in the order of use, the most recent last.
    this.#open.delete(id);
    this.#open.set(id, open);
    open.usedAt = Date.now();
    try {
      const slice = await (open.reading as Reading<Item>).slice(Number(position), limit);
      if (slice === undefined) throw gone();
      const { items, next } = slice;
      // The first page is also the last: nobody will continue, or page back to it.
      if (next === undefined && position === "0") this.#close(id);
      return { items, next: next === undefined ? undefined : `${id}.${next}` };
    } catch (error) {
      this.#close(id);
      throw error;
    }
  }

  close(): void {
    for (const id of this.#open.keys()) this.#close(id);
  }

  #start(list: string, read: (signal: AbortSignal) => AsyncGenerator<unknown, void, void>): string {
    const id = randomBytes(9).toString("base64url");
    const stop = new AbortController();
    // Each running call adds a listener.
    setMaxListeners(0, stop.signal);
    const reading = new Reading(read(stop.signal), stop);
    this.#open.set(id, { list, reading, usedAt: Date.now() });
    return id;
  }

  #sweep(): void {
    for (const [id, { usedAt }] of this.#open) {
      if (this.#open.size > MAX_OPEN || Date.now() - usedAt > MAX_IDLE) this.#close(id);
    }
  }

  #close(id: string): void {
    const open = this.#open.get(id);
    this.#open.delete(id);
    // A step that is still running may fail. Nobody awaits it.
    void open?.reading.close().catch(() => {});
  }
}

function gone(): HttpError {
  return new HttpError(410, "this page of the list has expired: start again at the first page");
}
