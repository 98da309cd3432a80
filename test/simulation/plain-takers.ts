import type { BlockingQueue, QueueOptions } from "../../src/index.ts";
import type { Shop } from "./shop.ts";
import type { SimProcess } from "./sim.ts";

/** The ways to take from a plain queue. */
export const PLAIN_STYLES = [
  "take",
  "abort",
  "takeMany",
  "poll",
  "look",
  "subscribe",
  "loop",
] as const;

export type PlainStyle = (typeof PLAIN_STYLES)[number];

/** The ways in which a message may go back to the queue. */
export const CHANGING_MINDS: readonly PlainStyle[] = ["abort", "look"];

/** The most that one call asks for. */
export const MOST_AT_ONCE = 3;

/** Takes messages in one of the ways, until the client is closed. */
export function takePlainly(
  shop: Shop,
  process: SimProcess,
  style: PlainStyle,
  options: QueueOptions<number> = {},
): void {
  const queue = process.run(() => process.line.getBlockingQueue<number>(shop.queue, options));
  const taker = new PlainTaker(shop, process, queue);
  if (style === "subscribe") taker.subscribe();
  else void shop.sim.go(`${process.name} takes by ${style}`, process, () => taker[style]());
}

/** Takes everything that is left. `isLast`: somebody else should have taken it long ago. */
export async function takeLastPlainly(
  shop: Shop,
  process: SimProcess,
  isLast = true,
): Promise<void> {
  const queue = process.line.getBlockingQueue<number>(shop.queue);
  const taker = new PlainTaker(shop, process, queue, isLast);
  do await taker.takeWithin(5000);
  while (!(await shop.isEmptyWithin(0)) && shop.sim.elapsed < 3_600_000);
}

/** One process that takes from a plain queue. */
class PlainTaker {
  readonly #shop: Shop;
  readonly #process: SimProcess;
  readonly #queue: BlockingQueue<number>;
  readonly #isLast: boolean;
  #isClosed = false;

  constructor(shop: Shop, process: SimProcess, queue: BlockingQueue<number>, isLast = false) {
    this.#shop = shop;
    this.#process = process;
    this.#queue = queue;
    this.#isLast = isLast;
  }

  async take(): Promise<void> {
    while (!this.#isClosed) {
      await this.#got("take", {}, async () => [await this.#queue.take()]);
      await this.#work();
    }
  }

  /** Takes, and often changes its mind. */
  async abort(): Promise<void> {
    const { sim } = this.#shop;
    while (!this.#isClosed) {
      const controller = new AbortController();
      const { signal } = controller;
      const isPatient = this.#shop.isEnding || sim.random.chance(0.4);
      if (!isPatient) void this.#shop.patience().then(() => controller.abort());
      const how = sim.random.weighted({ take: 3, takeMany: 1, look: isPatient ? 0 : 1 });
      if (how === "take") {
        await this.#got("take", {}, async () => [await this.#queue.take({ signal })]);
      } else if (how === "takeMany") {
        const timeout = sim.random.pick([300, 3000]);
        const options = { limit: MOST_AT_ONCE, timeout, signal };
        const args = { limit: MOST_AT_ONCE, timeout };
        await this.#got("takeMany", args, () => this.#queue.takeMany(options));
      } else {
        await sim.sleep(Math.min(this.#shop.untilNextDue ?? 1, 5000));
        await this.#look(signal);
      }
      await this.#work();
    }
  }

  /** Looks now and then without waiting, so that messages pile up; and often gives up before the reply is there. */
  async look(): Promise<void> {
    const { sim } = this.#shop;
    while (!this.#isClosed) {
      const controller = new AbortController();
      const isPatient = this.#shop.isEnding || sim.random.chance(0.4);
      if (!isPatient) void this.#shop.fewEvents().then(() => controller.abort());
      await this.#look(controller.signal);
      await sim.sleep(this.#shop.isEnding ? 250 : sim.random.magnitude(1, 3000));
    }
  }

  async takeMany(): Promise<void> {
    while (!this.#isClosed) {
      const limit = this.#shop.sim.random.between(1, MOST_AT_ONCE);
      const timeout = this.#shop.sim.random.pick([0, 1, 300, 3000]);
      await this.#got("takeMany", { limit, timeout }, () =>
        this.#queue.takeMany({ limit, timeout }),
      );
      await this.#work();
    }
  }

  async poll(): Promise<void> {
    while (!this.#isClosed) await this.takeWithin(this.#shop.sim.random.pick([0, 20, 500, 4000]));
  }

  async takeWithin(timeout: number): Promise<void> {
    await this.#got("poll", { timeout }, async () => {
      const n = await this.#queue.poll(timeout);
      return n === undefined ? [] : [n];
    });
    await this.#work();
  }

  subscribe(): void {
    const { sim, ledger } = this.#shop;
    const concurrency = sim.random.between(1, MOST_AT_ONCE);
    ledger.begin(this.#process, "subscribe", { limit: concurrency });
    const handle = async (n: number) => {
      const delivery = this.#deliver(n);
      await this.#work();
      const how = !this.#shop.isEnding && sim.random.chance(0.1) ? "threw" : "returned";
      ledger.handlerEnded(this.#process, delivery, how);
      if (how === "threw") throw new Error("the handler fails");
    };
    this.#process.run(() => this.#queue.subscribe(handle, { concurrency, onError: () => {} }));
  }

  /** Takes in a loop, and begins another one if Redis has refused to hand out more. */
  async loop(): Promise<void> {
    while (!this.#isClosed) {
      let wait = this.#shop.ledger.begin(this.#process, "take", {});
      try {
        for await (const n of this.#queue) {
          this.#deliver(n);
          wait.answer(1);
          await this.#work();
          wait = this.#shop.ledger.begin(this.#process, "take", {});
        }
        this.#isClosed = true;
        wait.answer("closed");
      } catch (error) {
        this.#isClosed = (error as { code?: unknown }).code === "CLOSED";
        wait.fail(error);
        await this.#work();
      }
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    await this.#got("poll", { timeout: 0 }, async () => {
      const n = await this.#queue.poll(0, { signal });
      return n === undefined ? [] : [n];
    });
  }

  /** Works for a while; what a taker does between two calls. */
  async #work(): Promise<void> {
    const { sim } = this.#shop;
    await sim.sleep(sim.random.chance(0.5) ? 1 : sim.random.magnitude(1, 800));
  }

  async #got(verb: string, args: object, take: () => Promise<number[]>): Promise<void> {
    const { ledger } = this.#shop;
    const settle = ledger.begin(this.#process, verb, { ...args });
    try {
      const all = await take();
      for (const n of all) this.#deliver(n);
      settle.answer(all.length);
    } catch (error) {
      this.#isClosed = (error as { code?: unknown }).code === "CLOSED";
      settle.fail(error);
    }
  }

  #deliver(n: number): number {
    return this.#shop.ledger.deliver(this.#process, n, this.#isLast ? { isLast: true } : {});
  }
}
