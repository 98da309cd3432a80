import { Clerk } from "../clerk.ts";
import {
  RELIABLE_STYLES,
  takeLastReliably,
  takeReliably,
  type ReliableStyle,
  type ReliableWork,
} from "../reliable-takers.ts";
import { revokeSome } from "../revoking.ts";
import { audit, produce, Shop } from "../shop.ts";
import { FAULT_KINDS, LATE_REPLIES, type Sim, type SimProcess, type World } from "../sim.ts";

/** A reliable queue: groups, retries, leases, dead letters and redrives, and every way to take and to settle. */
export const reliable = worldOf("reliable", { styles: RELIABLE_STYLES });

/** The same with batches that wait to fill up, and handlers that have too little time. */
export const handlers = worldOf("handlers", {
  longestWait: 2000,
  styles: ["subscribe", "batch", "route", "hand"],
  time: { timeLimit: 100, grace: 50 },
});

function worldOf(
  name: string,
  {
    styles,
    ...more
  }: Pick<ReliableWork, "longestWait" | "time"> & { readonly styles: readonly ReliableStyle[] },
): World {
  return {
    name,
    faults: [...FAULT_KINDS, LATE_REPLIES],
    events: 900,

    async run(sim) {
      const { random } = sim;
      const terms = termsOf(sim);
      sim.note({ terms });
      const { groups, maxAttempts, retry, leaseTimeout, hasSequences, keyCount } = terms;
      // No draw of its own: half of the runs also note what is handled.
      const keepHandled = leaseTimeout === 1000 ? 3_600_000 : 0;
      const options = { maxAttempts, retry, leaseTimeout, keepHandled };
      const optionsOf = (group: string) => ({ group, ...options });
      const shop = new Shop(sim);
      const founder = shop.hire("founder", { mayCrash: false });
      const [queue] = founder.run(() =>
        groups.map((group) => founder.line.getReliableQueue<number>(shop.queue, optionsOf(group))),
      );
      if (queue === undefined) return;
      await sim.go("founder founds the groups", founder, async () => {
        for (const group of groups) {
          const handle = founder.line.getReliableQueue<number>(shop.queue, optionsOf(group));
          const poll = async () => (await handle.poll()) === undefined;
          const look = () => shop.ledger.call(founder, "poll", { group, timeout: 0 }, poll);
          while (!(await look())) await sim.sleep(500);
        }
      });
      for (const group of groups) {
        for (let i = 0; i < random.between(1, 2); i++) {
          shop.staff(`${group}${i}`, (process) => {
            const style = random.pick(styles);
            takeReliably(shop, process, {
              options: optionsOf(group),
              style,
              longest: random.pick([50, 800, 2 * leaseTimeout]),
              failing: keyCount > 0 ? 0.6 : 0.25,
              impatience: random.pick([0.1, 0.9]),
              mayFreeze: true,
              settlesTogether: random.chance(0.5),
              ...more,
              ...(hasSequences && { sequenceOf: (n: number) => String(n % 2) }),
            });
          });
        }
      }
      const clerks = Array.from({ length: random.between(1, 2) }, (_, i) => {
        const process = shop.hire(`producer${i}`, { transfer: random.chance(0.5) });
        const handle = process.run(() =>
          random.chance(0.7)
            ? process.line.getReliableQueue<number>(shop.queue, optionsOf(groups[0] ?? "default"))
            : process.line.getDelayedQueue<number>(shop.queue),
        );
        return new Clerk(shop.ledger, process, handle);
      });
      if (terms.isClockSet) void setClock(shop, leaseTimeout);
      await Promise.all([
        produce(shop, clerks, (clerk) =>
          keyCount > 0 ? workOnKeys(shop, clerk, keyCount) : work(shop, clerk),
        ),
        ...clerks.map((clerk) => revokeSome(shop, clerk)),
      ]);
      if (random.chance(0.3)) await shop.seeDeadLetters(founder, queue, "redrive");
      const all = groups.map(optionsOf);
      const takeLast = (last: SimProcess) => takeLastReliably(shop, last, all);
      await shop.end(takeLast);
      while ((await shop.seeDeadLetters(founder, queue, random.pick(["redrive", "clear"]))) > 0) {
        await shop.end(takeLast);
      }
      await shop.closeAll((rest) => takeLastReliably(shop, rest, all, false));
    },

    async check(sim) {
      const noted = sim.history.find(({ event }) => "terms" in event);
      const terms = noted?.event["terms"] as Terms;
      return await audit(sim, {
        queue: "orders",
        kind: "reliable",
        isOrderedBy: terms.hasSequences,
        ...terms,
      });
    },
  };
}

/** What a run is like. */
type Terms = ReturnType<typeof termsOf>;

function termsOf({ random }: Sim) {
  return {
    groups: random.chance(0.7) ? ["a"] : ["a", "b"],
    maxAttempts: random.between(1, 4),
    retry: random.pick([[0], [50, 500], [10, 1000, 3000]]),
    leaseTimeout: random.pick([1000, 3000]),
    hasSequences: random.chance(0.3),
    /** How many business keys the offers share; 0 if each offer has a key of its own. */
    keyCount: random.pick([0, 0, 1, 3]),
    /** Whether the server's clock is set forward beyond a lease, while handlers work. */
    isClockSet: random.chance(0.2),
  };
}

/** Sets the server's clock forward a few times: nobody's lease ends by that. */
async function setClock(shop: Shop, leaseTimeout: number): Promise<void> {
  const { sim } = shop;
  await sim.go("somebody sets the clock", undefined, async () => {
    for (let i = 0; i < 4; i++) {
      await sim.sleep(sim.random.magnitude(50, 2000));
      if (shop.isEnding) return;
      sim.fault({ kind: "clock-step", duration: leaseTimeout * sim.random.between(1, 3) });
    }
  });
}

/** What a producer does where offers share a few keys, while their messages are delayed, in flight or retrying. */
async function workOnKeys(shop: Shop, clerk: Clerk, keyCount: number): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  const count = random.between(8, 16);
  for (let i = 0; i < count; i++) {
    const verb = random.weighted({ offer: 8, cancel: 2, has: 2, get: 1, reschedule: 1 });
    const key = `k:${random.int(keyCount)}`;
    const onDuplicate = random.weighted({ ignore: 6, replace: 1, update: 1 });
    const delay = random.pick([0, 0, 20, 3000]);
    const pause = random.pick([1, 20, 100, 500]);
    if (!sim.wants()) continue;
    if (verb === "offer") await clerk.offer(delay, { key, onDuplicate });
    else if (verb === "reschedule") await clerk.reschedule(key, delay);
    else await clerk[verb](key);
    await sim.sleep(pause);
  }
}

/** What a producer does. Each message has a key of its own, for routes. */
async function work(shop: Shop, clerk: Clerk): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  const targets: string[] = [];
  const count = random.between(4, 8);
  const acts: Promise<void>[] = [];
  for (let i = 0; i < count; i++) {
    const verb = random.weighted({
      offer: 6,
      many: 2,
      cancel: 2,
      reschedule: 1,
      promote: 1,
      get: 1,
    });
    const target = targets.length === 0 ? undefined : random.pick(targets);
    const delay = random.pick([0, 0, 20, 100, random.between(1, 3000)]);
    const size = random.between(2, 4);
    const key = `k:${clerk.process.name}:${i}`;
    const pause = random.pick([0, 0, 5, 50, 800]);
    if (!sim.wants()) continue;
    const done = act();
    acts.push(done);
    if (random.chance(0.7)) await done;
    if (pause > 0) await sim.sleep(pause);

    async function act(): Promise<void> {
      if (verb === "many") {
        const all = Array.from({ length: size }, (_, j) => ({ delay, key: `${key}:${j}` }));
        for (const result of await clerk.offerMany(all)) keep(result);
      } else if (verb === "offer" || target === undefined) {
        keep(await clerk.offer(delay, { key }));
        targets.push(key);
      } else if (verb === "cancel") await clerk.cancel(target);
      else if (verb === "reschedule") keep(await clerk.reschedule(target, delay));
      else if (verb === "promote") keep(await clerk.promote(target));
      else await clerk.get(target);
    }
  }
  await Promise.all(acts);

  function keep(result: { readonly id: string } | undefined): void {
    if (result !== undefined) targets.push(result.id);
  }
}
