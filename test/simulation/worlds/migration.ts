import type { DelayedQueue, ReliableQueueOptions } from "../../../src/index.ts";
import { Clerk } from "../clerk.ts";
import { PLAIN_STYLES, takeLastPlainly, takePlainly } from "../plain-takers.ts";
import { RELIABLE_STYLES, takeLastReliably, takeReliably } from "../reliable-takers.ts";
import { audit, produce, Shop } from "../shop.ts";
import { FAULT_KINDS, type Sim, type SimProcess, type World } from "../sim.ts";
import { someWork } from "../some-work.ts";

/** A queue that becomes reliable, and plain again, while its producers go on and its consumers live and die. */
export const migration: World = {
  name: "migration",
  every: 2,
  faults: FAULT_KINDS,
  events: 1000,

  async run(sim) {
    const { random } = sim;
    const terms = termsOf(sim);
    sim.note({ terms });
    const shop = new Shop(sim);
    const options: ReliableQueueOptions<number> = {
      maxAttempts: terms.maxAttempts,
      retry: terms.retry,
      leaseTimeout: terms.leaseTimeout,
    };
    const office = shop.hire("office", { mayCrash: false });
    const queue = office.run(() => office.line.getDelayedQueue<number>(shop.queue));
    const crews = new Crews(shop, options, office, queue);
    const clerks = Array.from({ length: random.between(1, 2) }, (_, i) => {
      const process = shop.hire(`producer${i}`);
      const handle = process.run(() => process.line.getDelayedQueue<number>(shop.queue));
      return new Clerk(shop.ledger, process, handle);
    });
    if (terms.beginsReliable) crews.hireReliable();
    else crews.hirePlain();
    const turn = async () => {
      for (let i = 0; i < terms.turns; i++) {
        await sim.sleep(random.magnitude(100, 4000));
        await crews.turn();
      }
    };
    await Promise.all([produce(shop, clerks, (clerk) => someWork(shop, clerk)), turn()]);
    const takeLast = (last: SimProcess) => takeLastReliably(shop, last, [options]);
    if (!crews.isReliable) {
      await shop.end(
        (last) => takeLastPlainly(shop, last),
        () => crews.stayPlain(),
      );
      // Dead letters stay where they are.
      await crews.turn();
    }
    await shop.end(takeLast);
    const examiner = shop.hire("examiner", { mayCrash: false });
    const letters = examiner.run(() => examiner.line.getReliableQueue<number>(shop.queue, options));
    while ((await shop.seeDeadLetters(examiner, letters, random.pick(["redrive", "clear"]))) > 0) {
      await shop.end(takeLast);
    }
    await shop.closeAll((rest) => takeLastReliably(shop, rest, [options], false));
  },

  async check(sim) {
    const noted = sim.history.find(({ event }) => "terms" in event);
    const terms = noted?.event["terms"] as Terms;
    return await audit(sim, {
      queue: "orders",
      kind: "mixed",
      groups: ["default"],
      expectedTroubles: ["WRONG_HANDLE"],
      ...terms,
    });
  },
};

/** What a run is like. */
type Terms = ReturnType<typeof termsOf>;

function termsOf({ random }: Sim) {
  return {
    beginsReliable: random.chance(0.7),
    turns: random.between(1, 3),
    maxAttempts: random.between(2, 4),
    retry: random.pick([[50], [10, 1000], [3000]]),
    leaseTimeout: random.pick([1000, 3000]),
  };
}

/** The consumers of a queue: those who take from a plain one, or those who take from a reliable one. */
class Crews {
  isReliable = false;
  readonly #shop: Shop;
  readonly #options: ReliableQueueOptions<number>;
  readonly #office: SimProcess;
  readonly #queue: DelayedQueue<number>;
  #dismissals: (() => Promise<void>)[] = [];
  #count = 0;

  constructor(
    shop: Shop,
    options: ReliableQueueOptions<number>,
    office: SimProcess,
    queue: DelayedQueue<number>,
  ) {
    this.#shop = shop;
    this.#options = options;
    this.#office = office;
    this.#queue = queue;
  }

  hirePlain(): void {
    const { random } = this.#shop.sim;
    this.isReliable = false;
    this.#hire("plain", (process) => takePlainly(this.#shop, process, random.pick(PLAIN_STYLES)));
  }

  hireReliable(): void {
    const { random } = this.#shop.sim;
    const options = this.#options;
    this.isReliable = true;
    this.#hire("reliable", (process) => {
      takeReliably(this.#shop, process, {
        options,
        style: random.pick(RELIABLE_STYLES.filter((style) => style !== "route")),
        longest: random.pick([50, 800, 3000]),
        failing: 0.5,
        settlesTogether: random.chance(0.5),
      });
    });
  }

  /** Makes a plain queue reliable, and a reliable one plain. */
  async turn(): Promise<void> {
    const { sim } = this.#shop;
    const { random } = sim;
    if (!this.isReliable) {
      const old = this.#dismissals.splice(0);
      this.hireReliable();
      await sim.sleep(random.magnitude(1, 1000));
      await Promise.all(old.map((dismiss) => dismiss()));
      return;
    }
    if (random.chance(0.5)) {
      await this.#makePlain();
      await sim.sleep(random.magnitude(1, 1000));
    }
    await Promise.all(this.#dismissals.splice(0).map((dismiss) => dismiss()));
    const isEarly = random.chance(0.3);
    if (isEarly) this.hirePlain();
    await this.stayPlain();
    if (!isEarly) this.hirePlain();
  }

  /** Makes the queue plain once nobody takes from it as a reliable one; and again if a failover has undone that. */
  async stayPlain(): Promise<void> {
    while (!(await this.#makePlain())) await this.#shop.sim.sleep(300);
  }

  #hire(kind: string, job: (process: SimProcess) => void): void {
    for (let i = 0; i < this.#shop.sim.random.between(1, 2); i++) {
      this.#dismissals.push(this.#shop.staff(`${kind}${++this.#count}`, job));
    }
  }

  /** Returns whether the queue is plain now. */
  async #makePlain(): Promise<boolean> {
    const make = () => this.#queue.makePlain();
    const done = await this.#shop.ledger.call(this.#office, "makePlain", {}, make);
    return done?.isPlain === true;
  }
}
