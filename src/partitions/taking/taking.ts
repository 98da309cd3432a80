import { takeOf } from "../parts/member.ts";
import type { Parts } from "../parts/parts.ts";
import { networkTime } from "../../time/runtime.ts";

/**
 * Announces to the other processes whether this one takes, so that the partitions are divided among those that do. A
 * process takes from its first wait on, until no call has waited for a while.
 */
export class Taking {
  readonly #parts: Parts;
  readonly #source: string;
  #waits = 0;
  #isAnnounced = false;
  #timer: NodeJS.Timeout | undefined;

  /** `group` is the consumer group of a reliable queue. */
  constructor(parts: Parts, group?: string) {
    this.#parts = parts;
    this.#source = takeOf(group);
  }

  /** The names of the members that take from the same LIST or group. */
  get members(): string[] {
    return this.#parts.following.members.flatMap(({ name, roles }) =>
      roles.takes?.includes(this.#source) === true ? [name] : [],
    );
  }

  /** Makes a call that waits; this process counts as taking until the call is done, and a while longer. */
  during<Result>(wait: () => Promise<Result>): Promise<Result> {
    this.#waits++;
    networkTime.clearTimeout(this.#timer);
    if (!this.#isAnnounced) {
      this.#isAnnounced = true;
      this.#parts.following.attendTaking(this.#source, true);
    }
    return wait().finally(() => {
      this.#waits--;
      if (this.#waits === 0) this.#timer = networkTime.setTimeout(() => this.#end(), IDLE).unref();
    });
  }

  close(): void {
    networkTime.clearTimeout(this.#timer);
  }

  #end(): void {
    this.#isAnnounced = false;
    this.#parts.following.attendTaking(this.#source, false);
  }
}

/** Milliseconds without a wait after which this process gives up its share. */
const IDLE = 5000;
