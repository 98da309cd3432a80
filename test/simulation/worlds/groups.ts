import { queueKeys } from "../../../src/queue/keys.ts";
import type { ReliableQueue, ReliableQueueOptions } from "../../../src/index.ts";
import { Clerk } from "../clerk.ts";
import { RELIABLE_STYLES, takeLastReliably, takeReliably } from "../reliable-takers.ts";
import { revokeSome } from "../revoking.ts";
import { audit, produce, Shop } from "../shop.ts";
import { FAULT_KINDS, LATE_REPLIES, type Sim, type SimProcess, type World } from "../sim.ts";
import { someWork } from "../some-work.ts";

/** Several groups of one queue, which come and go at any time, and dead letters that are redriven one by one. */
export const groups: World = {
  name: "groups",
  every: 2,
  faults: [...FAULT_KINDS, LATE_REPLIES],
  events: 900,

  async run(sim) {
    const { random } = sim;
    const terms = termsOf(sim);
    sim.note({ terms });
    const shop = new Shop(sim);
    const office = shop.hire("office", { mayCrash: false });
    const queue = open(office, shop, optionsOf(terms, "a"));
    await found(shop, office, queue);
    const clerks = Array.from({ length: random.between(1, 2) }, (_, i) => {
      const process = shop.hire(`producer${i}`);
      const handle = random.chance(0.5)
        ? open(process, shop, optionsOf(terms, "a"))
        : process.run(() => process.line.getDelayedQueue<number>(shop.queue));
      return new Clerk(shop.ledger, process, handle);
    });
    await Promise.all([
      produce(shop, clerks, (clerk) => someWork(shop, clerk)),
      ...clerks.map((clerk) => revokeSome(shop, clerk)),
      ...terms.plans.map((plan) => follow(shop, terms, plan, office)),
      review(shop, office, queue),
    ]);
    const lasting = terms.plans.filter(({ leavesAt }) => leavesAt === undefined);
    const all = lasting.map(({ group }) => optionsOf(terms, group));
    const takeLast = (last: SimProcess) => takeLastReliably(shop, last, all);
    await shop.end(takeLast);
    while ((await shop.seeDeadLetters(office, queue, random.pick(["redrive", "clear"]))) > 0) {
      await shop.end(takeLast);
    }
    await shop.closeAll((rest) => takeLastReliably(shop, rest, all, false));
  },

  async check(sim) {
    const noted = sim.history.find(({ event }) => "terms" in event);
    const terms = noted?.event["terms"] as Terms;
    const { plans } = terms;
    return await audit(sim, {
      queue: "orders",
      kind: "reliable",
      ...terms,
      groups: plans.map(({ group }) => group),
      startNew: plans.filter(({ start }) => start === "new").map(({ group }) => group),
    });
  },
};

/** What a run is like. */
type Terms = ReturnType<typeof termsOf>;

/** When a group comes and, perhaps, goes (ms). */
interface Plan {
  readonly group: string;
  readonly start: "0" | "new";
  readonly comesAt: number;
  readonly leavesAt?: number;
}

function termsOf({ random }: Sim) {
  const comesAt = () => random.pick([0, Math.round(random.magnitude(10, 5000))]);
  const start = () => random.pick(["0", "new"] as const);
  const plans: Plan[] = [
    // The office has founded it, and its consumers may come last.
    { group: "a", start: "0", comesAt: comesAt() },
    { group: "b", start: start(), comesAt: comesAt() },
  ];
  if (random.chance(0.4)) {
    const at = comesAt();
    const leavesAt = at + Math.round(random.magnitude(100, 5000));
    plans.push({ group: "c", start: start(), comesAt: at, leavesAt });
  }
  return {
    plans,
    maxAttempts: random.between(1, 3),
    retry: random.pick([[0], [50, 500], [10, 1000]]),
    leaseTimeout: random.pick([1000, 3000]),
  };
}

/** Creates the first group, before anything is offered. */
async function found(shop: Shop, office: SimProcess, queue: ReliableQueue<number>): Promise<void> {
  const { sim, ledger } = shop;
  const args = { group: queue.group, timeout: 0 };
  const poll = async () => (await queue.poll()) === undefined;
  await sim.go("office founds a group", office, async () => {
    while (!(await ledger.call(office, "poll", args, poll))) await sim.sleep(500);
  });
}

/** Starts the consumers of a group; where the group is given up, closes them, and destroys it. */
async function follow(
  shop: Shop,
  terms: Terms,
  { group, comesAt, leavesAt }: Plan,
  office: SimProcess,
): Promise<void> {
  const { sim, ledger } = shop;
  const { random } = sim;
  await sim.sleep(comesAt);
  const dismiss = shop.staff(group, (process) => {
    takeReliably(shop, process, {
      options: optionsOf(terms, group),
      style: random.pick(RELIABLE_STYLES.filter((style) => style !== "route")),
      longest: random.pick([50, 800]),
      settlesTogether: random.chance(0.5),
    });
  });
  if (leavesAt === undefined) return;
  await sim.sleep(leavesAt - comesAt);
  await dismiss();
  const destroy = () => sim.control.xgroup("DESTROY", queueKeys(shop.queue).stream, group);
  // After a failover there may be no stream.
  const tryIt = () => sim.outside(() => destroy().catch(() => 0));
  await ledger.call(office, "destroy", { group }, tryIt);
}

/** Redrives some dead letters one by one, and removes others, while new ones may come. */
async function review(shop: Shop, office: SimProcess, queue: ReliableQueue<number>): Promise<void> {
  const { sim, ledger } = shop;
  const { random } = sim;
  const { deadLetters } = queue;
  await sim.go("office reviews the dead letters", office, async () => {
    for (let i = 0; i < 2; i++) {
      await sim.sleep(random.magnitude(500, 5000));
      const letters: { readonly id: string; readonly about: number | undefined }[] = [];
      await ledger.call(office, "deadLetters", {}, async () => {
        for await (const { id, payload, group, attempt, reason } of deadLetters) {
          ledger.note(office, { dead: payload, group, attempt, reason });
          letters.push({ id, about: payload });
        }
      });
      for (const { id, about } of letters) {
        const verb = random.weighted({ redrive: 3, remove: 1, leave: 2 });
        if (verb === "leave" || !sim.wants()) continue;
        if (verb === "redrive") {
          await ledger.call(office, verb, { about }, () => deadLetters.redrive(id));
        } else {
          await ledger.call(office, "removeLetters", { about }, () => deadLetters.remove(id));
        }
      }
    }
  });
}

function optionsOf({ plans, ...options }: Terms, group: string): ReliableQueueOptions<number> {
  const { start = "0" } = plans.find((plan) => plan.group === group) ?? {};
  const { maxAttempts, retry, leaseTimeout } = options;
  return { group, start, maxAttempts, retry, leaseTimeout };
}

function open(
  process: SimProcess,
  { queue }: Shop,
  options: ReliableQueueOptions<number>,
): ReliableQueue<number> {
  return process.run(() => process.line.getReliableQueue<number>(queue, options));
}
