/** What shows that Redis went back to an older copy of its data. */
export interface Sign {
  /** The queue that shows it. */
  readonly queue: string;
  /** The newest instant that Redis had shown to this process (epoch ms on the server's clock). */
  readonly knownAt: number;
  /** The newest instant that it shows now (epoch ms); undefined if its data do not tell. */
  readonly foundAt: number | undefined;
}

/** The outcome of a look at a queue. */
export interface Finding {
  /** Undefined if nothing shows that Redis went back. */
  readonly sign: Sign | undefined;
  /** From now on what Redis shows counts, and not what it had shown. */
  readonly accept: () => void;
}

/** What this process remembers of a queue. */
export interface Witness {
  readonly isEmpty: boolean;
  /**
   * Compares it with what Redis shows. `heardAt` is when Redis was last heard before its connection was lost, on this
   * process's clock.
   *
   * Rejects with ioredis's errors.
   */
  examine(heardAt: number): Promise<Finding>;
}

/** What follows if Redis went back. */
export interface FuseListener {
  /** Called once for each time. */
  readonly onFallBack: (signs: readonly Sign[]) => void;
  /** Called after that, and again until it resolves. Nothing is moved or taken meanwhile. */
  readonly beforeGoingOn: () => Promise<void>;
}

/**
 * Notices that a server went back to an older copy of its data: a restored backup, or a replica that was far behind.
 *
 * That cannot happen while a connection lives on. So the fuse looks when the connection that moves messages was lost,
 * before it moves or takes anything again; until then it costs nothing.
 */
export class Fuse {
  readonly #listener: FuseListener;
  readonly #witnesses = new Set<Witness>();
  /** When Redis was last heard before the loss that is not examined yet. */
  #heardAt: number | undefined;
  /** How often the connection was lost. */
  #losses = 0;
  /** Whether Redis went back, and what follows has not been done yet. */
  #isBlown = false;
  #passing: Promise<void> | undefined;

  constructor(listener: FuseListener) {
    this.#listener = listener;
  }

  add(witness: Witness): void {
    this.#witnesses.add(witness);
  }

  remove(witness: Witness): void {
    this.#witnesses.delete(witness);
  }

  /** The connection was lost; Redis was last heard at `heardAt`, on this process's clock. */
  lost(heardAt: number): void {
    this.#losses += 1;
    this.#heardAt ??= heardAt;
  }

  /**
   * Returns a promise to await before anything is moved or taken; undefined if nothing is in doubt. It rejects with
   * ioredis's errors, or what {@link FuseListener.beforeGoingOn} rejects with: nothing may be moved then.
   */
  passed(): Promise<void> | undefined {
    if (this.#heardAt === undefined) return undefined;
    this.#passing ??= this.#pass().finally(() => (this.#passing = undefined));
    return this.#passing;
  }

  async #pass(): Promise<void> {
    while (this.#heardAt !== undefined) {
      const losses = this.#losses;
      await this.#examine(this.#heardAt);
      if (this.#isBlown) await this.#listener.beforeGoingOn();
      this.#isBlown = false;
      if (losses === this.#losses) this.#heardAt = undefined;
    }
  }

  async #examine(heardAt: number): Promise<void> {
    const asked = [...this.#witnesses].filter(({ isEmpty }) => !isEmpty);
    const findings = await Promise.all(asked.map((witness) => witness.examine(heardAt)));
    for (const { accept } of findings) accept();
    const signs = findings.map(({ sign }) => sign).filter((sign) => sign !== undefined);
    if (signs.length === 0) return;
    this.#isBlown = true;
    this.#listener.onFallBack(signs);
  }
}

/**
 * Milliseconds. What Redis had shown for less than this when it was last heard, a failover may lose: replication is
 * asynchronous, and a replica that is not overloaded is behind by less than a second.
 */
export const BOUND = 5000;
