import { takeOf } from "../parts/member.ts";
import type { Parts } from "../parts/parts.ts";

/**
 * Tells the other processes whether this one takes, so that the partitions are shared out to those who do: from the first
 * wait on, until nobody has waited for a while.
 */
export class Taking {
  readonly #parts: Parts;
  readonly #what: string;
  #waits = 0;
  #isTold = false;
  #timer: NodeJS.Timeout | undefined;

  /** `group` is that of a reliable queue. */
  constructor(parts: Parts, group?: string) {
    this.#parts = parts;
    this.#what = takeOf(group);
  }

  /** The processes that take from the same, as far as is known. */
  get members(): string[] {
    return this.#parts.members.flatMap(({ name, roles }) =>
      roles.takes?.includes(this.#what) === true ? [name] : [],
    );
  }

  /** Somebody waits until the promise is settled. */
  during<Result>(wait: () => Promise<Result>): Promise<Result> {
    this.#waits++;
    clearTimeout(this.#timer);
    if (!this.#isTold) {
      this.#isTold = true;
      this.#parts.attendTaking(this.#what, true);
    }
    return wait().finally(() => {
      this.#waits--;
      if (this.#waits === 0) this.#timer = setTimeout(() => this.#end(), IDLE).unref();
    });
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #end(): void {
    this.#isTold = false;
    this.#parts.attendTaking(this.#what, false);
  }
}

/** Milliseconds without a wait after which others take what was this process's share. */
const IDLE = 5000;
