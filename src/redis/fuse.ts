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
export interface Verdict {
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
  examine(heardAt: number): Promise<Verdict>;
}

/** What follows if Redis went back. */
export interface FuseListener {
  /** Called once for each time. */
  readonly onFallBack: (signs: readonly Sign[]) => void;
  /** Called after that, and again until it resolves. Until then nothing is moved or taken. */
  readonly beforeGoingOn: () => Promise<void>;
}

/**
 * Notices that a server went back to an older copy of its data: a restored backup, or a replica that was far behind.
 *
 * That cannot happen while a connection lives on. So the fuse looks when the connection that moves messages was lost,
 * before it moves or takes anything again; until then it costs nothing.
 *
 * A server goes back as a whole: nothing goes on before all queues were looked at. The nodes of a Cluster go back one by
 * one, and may be down for long. So there each queue waits for the look at itself only.
 */
export class Fuse {
  readonly #listener: FuseListener;
  readonly #isWhole: boolean;
  readonly #witnesses = new Set<Witness>();
  /** What has not been examined since the connection was lost; and when Redis was last heard before that. */
  readonly #doubts = new Map<Witness, number>();
  readonly #passing = new Map<Witness | undefined, Promise<void>>();
  /** How often the connection was lost. */
  #losses = 0;
  /** Whether Redis went back, and what follows has not been done yet. */
  #isBlown = false;

  constructor(listener: FuseListener, { isWhole }: { readonly isWhole: boolean }) {
    this.#listener = listener;
    this.#isWhole = isWhole;
  }

  add(witness: Witness): void {
    this.#witnesses.add(witness);
  }

  remove(witness: Witness): void {
    this.#witnesses.delete(witness);
    this.#doubts.delete(witness);
  }

  /** The connection was lost; Redis was last heard at `heardAt`, on this process's clock. */
  lost(heardAt: number): void {
    this.#losses += 1;
    for (const witness of this.#witnesses) {
      if (!witness.isEmpty && !this.#doubts.has(witness)) this.#doubts.set(witness, heardAt);
    }
  }

  /**
   * Returns a promise to await before anything is moved or taken, of all queues or of one; undefined if nothing is in
   * doubt. It rejects with ioredis's errors, or what {@link FuseListener.beforeGoingOn} rejects with: nothing may be moved
   * then.
   */
  passed(of?: Witness): Promise<void> | undefined {
    const one = this.#isWhole ? undefined : of;
    if (!this.#isBlown && this.#doubtsOf(one).length === 0) return undefined;
    let passing = this.#passing.get(one);
    if (passing === undefined) {
      passing = this.#pass(one).finally(() => this.#passing.delete(one));
      this.#passing.set(one, passing);
    }
    return passing;
  }

  async #pass(one: Witness | undefined): Promise<void> {
    do {
      const losses = this.#losses;
      const asked = this.#doubtsOf(one);
      await this.#examine(asked);
      if (this.#isBlown) await this.#listener.beforeGoingOn();
      this.#isBlown = false;
      if (losses === this.#losses) for (const [witness] of asked) this.#doubts.delete(witness);
    } while (this.#doubtsOf(one).length > 0);
  }

  #doubtsOf(one: Witness | undefined): [Witness, number][] {
    if (one === undefined) return [...this.#doubts];
    const heardAt = this.#doubts.get(one);
    return heardAt === undefined ? [] : [[one, heardAt]];
  }

  async #examine(asked: readonly [Witness, number][]): Promise<void> {
    const findings = await Promise.all(asked.map(([witness, heardAt]) => witness.examine(heardAt)));
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
