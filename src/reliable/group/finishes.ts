import { nextTick } from "../../time/runtime.ts";
import type { Held } from "./held.ts";

/** What {@link Finishes} does with the deliveries of a turn. */
interface FinishesHost {
  /** Acknowledges deliveries; returns for each whether it was in flight for this consumer. */
  readonly send: (all: readonly Held[]) => Promise<readonly boolean[]>;
  /** Acknowledges a delivery after Redis has refused, or the reply was lost. Never rejects. */
  readonly sendAgain: (held: Held) => Promise<void>;
}

/** Deliveries that are acknowledged together. */
interface Turn {
  readonly deliveries: Held[];
  readonly send: () => void;
  readonly ended: Promise<void>;
}

/**
 * Acknowledges deliveries whose handlers have returned. Those of one turn of the event loop share a script, up to 200,
 * and one promise: every message passes here, and one of its own would cost it a tenth of this process's time.
 *
 * A script that is full is sent at once, so Redis works while this process goes on.
 */
export class Finishes {
  readonly #host: FinishesHost;
  /** Is not sent yet. */
  #turn: Turn | undefined;
  readonly #sending = new Set<Promise<unknown>>();

  constructor(host: FinishesHost) {
    this.#host = host;
  }

  /**
   * Acknowledges a delivery whose settlement has begun (see `Held.beginSettling`). Never rejects; resolves when the whole
   * turn is settled.
   */
  add(held: Held): Promise<void> {
    const turn = (this.#turn ??= this.#newTurn());
    turn.deliveries.push(held);
    if (turn.deliveries.length === BATCH) turn.send();
    return turn.ended;
  }

  /** Resolves when every delivery added so far has its reply or its error. */
  async replied(): Promise<void> {
    await Promise.allSettled(this.#sending);
  }

  #newTurn(): Turn {
    const deliveries: Held[] = [];
    let begin: (sending: Promise<readonly boolean[]>) => void;
    const sending = new Promise<readonly boolean[]>((resolve) => (begin = resolve));
    const send = () => {
      if (this.#turn?.deliveries !== deliveries) return;
      this.#turn = undefined;
      begin(this.#host.send(deliveries));
    };
    nextTick(send);
    this.#sending.add(sending);
    const ended = sending.then(
      (flags) => {
        this.#sending.delete(sending);
        for (let i = 0; i < deliveries.length; i++) deliveries[i]?.endSettling(flags[i]);
      },
      async () => {
        this.#sending.delete(sending);
        const again = deliveries.map((held) => {
          held.endSettling();
          // Begins at once, so nothing else settles the delivery in between.
          return this.#host.sendAgain(held);
        });
        await Promise.all(again);
      },
    );
    return { deliveries, send, ended };
  }
}

/**
 * Deliveries per script: up to a millisecond of Redis's time. With a hundred, a process with 200 handlers would work as
 * fast, but take a sixth more of its own time.
 */
const BATCH = 200;
