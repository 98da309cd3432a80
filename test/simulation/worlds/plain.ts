import { Clerk } from "../clerk.ts";
import { PLAIN_STYLES, takeLastPlainly, takePlainly } from "../plain-takers.ts";
import { audit, produce, Shop } from "../shop.ts";
import { FAULT_KINDS, type World } from "../sim.ts";

/** A plain queue: offers of every kind, cancels and reschedules, and every way to take, with aborts and closes. */
export const plain: World = {
  name: "plain",
  faults: FAULT_KINDS,
  events: 600,

  async run(sim) {
    const { random } = sim;
    const shop = new Shop(sim);
    const takers = random.between(1, 2);
    const mayGoBack = random.chance(0.7);
    const styles = PLAIN_STYLES.filter((style) => mayGoBack || style !== "abort");
    for (let i = 0; i < takers; i++) {
      shop.staff(`taker${i}`, (process) => {
        takePlainly(shop, process, random.pick(styles));
        if (mayGoBack && random.chance(0.3)) takePlainly(shop, process, random.pick(styles));
      });
    }
    if (mayGoBack && random.chance(0.4)) void closeEarly(shop);
    const transfer = random.chance(0.5);
    const clerks = Array.from({ length: random.between(1, 2) }, (_, i) => {
      const process = shop.hire(`producer${i}`, { transfer });
      return new Clerk(
        shop.ledger,
        process,
        process.run(() => process.line.getDelayedQueue(shop.queue)),
      );
    });
    sim.note({ mayGoBack });
    const ids: string[] = [];
    await produce(shop, clerks, (clerk) => work(shop, clerk, ids));
    await shop.end((last) => takeLastPlainly(shop, last));
    await shop.closeAll((rest) => takeLastPlainly(shop, rest, false));
  },

  async check(sim) {
    const mayGoBack = sim.history.some(({ event }) => event["mayGoBack"] === true);
    return await audit(sim, {
      queue: "orders",
      kind: "plain",
      groups: [""],
      inOrder: !mayGoBack,
      isPunctual: true,
      areOffersInTurn: true,
    });
  },
};

/** One more process takes for a while, and closes. */
async function closeEarly(shop: Shop): Promise<void> {
  const { sim } = shop;
  const process = shop.hire("leaver");
  takePlainly(shop, process, sim.random.pick(PLAIN_STYLES));
  await sim.go("leaver leaves", process, async () => {
    await sim.sleep(sim.random.magnitude(5, 10_000));
    void shop.close(process);
  });
}

/** What a producer does. */
async function work(shop: Shop, clerk: Clerk, ids: string[]): Promise<void> {
  const { sim, ledger } = shop;
  const { random } = sim;
  const delay = () => random.pick([0, 0, 1, 20, 100, Math.round(random.magnitude(1, 20_000))]);
  const count = random.between(4, 10);
  const acts: Promise<void>[] = [];
  for (let i = 0; i < count; i++) {
    const verb = random.weighted({
      offer: 5,
      offerAt: 1,
      many: 2,
      cancel: 3,
      reschedule: 2,
      promote: 1,
      get: 1,
    });
    const target = ids.length === 0 ? undefined : random.pick(ids);
    const wait = delay();
    const size = random.between(2, 4);
    const pause = random.pick([0, 0, 0, 5, 50, 800, 5000]);
    const isAwaited = random.chance(0.7);
    if (!sim.wants()) continue;
    const done = act();
    acts.push(done);
    if (isAwaited) await done;
    if (pause > 0) await sim.sleep(pause);

    async function act(): Promise<void> {
      if (verb === "offer") keep(await clerk.offer(wait));
      else if (verb === "offerAt") keep(await clerk.offerAt(ledger.now + wait));
      else if (verb === "many") {
        const all = Array.from({ length: size }, () => ({ delay: wait }));
        for (const result of await clerk.offerMany(all)) keep(result);
      } else if (target === undefined) await clerk.offer(wait);
      else if (verb === "cancel" && size === 4) {
        await Promise.all([clerk.cancel(target), clerk.cancel(target)]);
      } else if (verb === "cancel") await clerk.cancel(target);
      else if (verb === "reschedule") keep(await clerk.reschedule(target, wait));
      else if (verb === "promote") keep(await clerk.promote(target));
      else await clerk.get(target);
    }
  }
  if (sim.wants() && random.chance(0.3)) await TROUBLES[random.int(TROUBLES.length)]?.(shop, clerk);
  await Promise.all(acts);

  function keep(result: { readonly id: string } | undefined): void {
    if (result !== undefined) ids.push(result.id);
  }
}

/** What faults at random rarely meet: a fault at the very moment when something depends on it. */
const TROUBLES: readonly ((shop: Shop, clerk: Clerk) => Promise<void>)[] = [
  // Scripts are forgotten in the middle of offers that do not wait for one another.
  async ({ sim }, clerk) => {
    const offers: Promise<unknown>[] = [];
    for (let i = 0; i < 6; i++) {
      offers.push(clerk.offer(20));
      if (i === 2) sim.fault({ kind: "script-flush" });
      await sim.sleep(0.5);
    }
    await Promise.all(offers);
  },
  // Redis refuses to push when messages fall due, or come back.
  async ({ sim }, clerk) => {
    await Promise.all([clerk.offer(50), clerk.offer(50)]);
    const command = sim.random.pick(["rpush", "lpush"]);
    sim.fault({ kind: "rights", command, duration: 2000 });
    await sim.sleep(2500);
  },
  // Wake-ups get lost after a long quiet time.
  async ({ sim }, clerk) => {
    await sim.sleep(sim.random.between(40_000, 80_000));
    for (let i = 0; i < 8; i++) sim.fault({ kind: "deaf" });
    await sim.sleep(1);
    await clerk.offer(100);
  },
];
