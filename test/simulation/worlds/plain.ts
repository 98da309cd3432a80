import { Clerk } from "../clerk.ts";
import {
  CHANGING_MINDS,
  PLAIN_STYLES,
  takeLastPlainly,
  takePlainly,
  type PlainStyle,
} from "../plain-takers.ts";
import { audit, cutSometimes, produce, Shop } from "../shop.ts";
import { FAULT_KINDS, type Sim, type World } from "../sim.ts";

/** A plain queue: offers of every kind, every way to change them, to look at them and to take them, with aborts and closes. */
export const plain: World = {
  name: "plain",
  faults: FAULT_KINDS,
  events: 600,

  async run(sim) {
    const { random } = sim;
    const shop = new Shop(sim);
    const takers = random.between(1, 2);
    const mayGoBack = random.chance(0.7);
    const styles = stylesOf(sim, mayGoBack);
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
    cutSometimes(sim, ["give-back", "remove", "poll", "offer"]);
    const known: Known[] = [];
    await produce(shop, clerks, (clerk) => work(shop, clerk, known));
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

/** How the takers of a run take: as they like, or all of them change their minds, so that messages often go back. */
function stylesOf({ random }: Sim, mayGoBack: boolean): readonly PlainStyle[] {
  if (!mayGoBack) return PLAIN_STYLES.filter((style) => !CHANGING_MINDS.includes(style));
  return random.chance(0.4) ? [random.pick(CHANGING_MINDS)] : PLAIN_STYLES;
}

/** One more process takes for a while, and closes. */
async function closeEarly(shop: Shop): Promise<void> {
  const { sim } = shop;
  const process = shop.hire("leaver");
  takePlainly(shop, process, sim.random.pick(PLAIN_STYLES));
  await sim.go("leaver leaves", process, async () => {
    for (let i = 0; i < sim.random.between(1, 4); i++) await shop.patience();
    void shop.close(process);
  });
}

/** A message that a producer knows of. */
interface Known {
  readonly n: number;
  readonly id: string;
}

/** What a producer does. */
async function work(shop: Shop, clerk: Clerk, known: Known[]): Promise<void> {
  const { sim, ledger } = shop;
  const { random } = sim;
  const delay = () => random.pick([0, 0, 1, 20, 100, Math.round(random.magnitude(1, 20_000))]);
  const count = random.between(4, 10);
  const acts: Promise<void>[] = [];
  for (let i = 0; i < count; i++) {
    const verb = random.weighted({
      offer: 10,
      offerAt: 2,
      many: 4,
      put: 1,
      cancel: 6,
      remove: 2,
      clear: 0.5,
      dropDelayed: 1,
      reschedule: 4,
      promote: 2,
      get: 2,
      view: 2,
    });
    const target = known.length === 0 ? undefined : random.pick(known);
    const wait = delay();
    const size = random.between(2, 4);
    const pause = random.pick([0, 0, 0, 5, 50, 800, 5000]);
    const isAwaited = random.chance(0.7);
    const hasKeys = random.chance(0.4);
    if (!sim.wants()) continue;
    const done = act();
    acts.push(done);
    if (isAwaited) await done;
    if (pause > 0) await sim.sleep(pause);

    async function act(): Promise<void> {
      if (verb === "offer") keep(await clerk.offer(wait));
      else if (verb === "offerAt") keep(await clerk.offerAt(ledger.now + wait));
      else if (verb === "many") {
        // Offers with a key, and others, go to different scripts.
        const all = Array.from({ length: size }, (_, n) => ({
          delay: wait,
          ...(hasKeys && n % 2 === 0 && { key: `${clerk.process.name}:${i}:${n}` }),
        }));
        for (const result of await clerk.offerMany(all)) keep(result);
      } else if (verb === "put") await clerk.put();
      else if (verb === "clear") await clerk.clear();
      else if (verb === "dropDelayed") await clerk.dropDelayed(size - 1);
      else if (verb === "view") await clerk.view(size === 2 ? "readAll" : "soonest");
      else if (target === undefined) await clerk.offer(wait);
      else if (verb === "cancel" && size === 4) {
        await Promise.all([clerk.cancel(target.id), clerk.cancel(target.id)]);
      } else if (verb === "cancel") await clerk.cancel(target.id);
      else if (verb === "remove") await clerk.remove(target.n, target.id);
      else if (verb === "reschedule") keep(await clerk.reschedule(target.id, wait), target.n);
      else if (verb === "promote") keep(await clerk.promote(target.id), target.n);
      else await clerk.get(target.id);
    }
  }
  if (sim.wants() && random.chance(0.5)) await random.pick(TROUBLES)(shop, clerk);
  await Promise.all(acts);

  function keep(result: { id: string; n?: number | undefined } | undefined, n = result?.n) {
    if (result !== undefined && n !== undefined) known.push({ n, id: result.id });
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
  // The server's clock is set while nothing happens. The next message is on time.
  async ({ sim }, clerk) => {
    await sim.sleep(sim.random.between(3000, 5000));
    sim.fault({ kind: "clock-step", duration: sim.random.between(10_000, 60_000) });
    await sim.sleep(1);
    const delay = sim.random.between(3000, 10_000);
    await clerk.offer(delay);
    await sim.sleep(delay);
  },
  // After a quiet time a message that was far off is due at once, and nothing else says so.
  async ({ sim }, clerk) => {
    await sim.sleep(sim.random.between(20_000, 30_000));
    const offered = await clerk.offer(sim.random.between(10_000, 15_000));
    if (offered === undefined) return;
    await sim.sleep(sim.random.between(100, 1000));
    await clerk.reschedule(offered.id, 200);
    await sim.sleep(5000);
  },
  // A process that has moved messages dies, and nobody replaces it.
  async (shop, clerk) => {
    const { sim } = shop;
    const mover = shop.hire("mover");
    mover.run(() => mover.line.getDelayedQueue(shop.queue));
    await sim.sleep(sim.random.between(100, 1000));
    for (let i = 0; i < 6; i++) {
      await clerk.offer(50);
      await sim.sleep(sim.random.between(100, 400));
    }
    const delay = sim.random.between(1000, 5000);
    await clerk.offer(delay);
    mover.crash();
    await sim.sleep(delay + 5000);
  },
];
