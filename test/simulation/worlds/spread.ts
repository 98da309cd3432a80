import { abandoned, changeNowAndThen, expectEndOfChanges } from "../changes.ts";
import type { Clerk } from "../clerk.ts";
import { PLAIN_STYLES, takePlainly } from "../plain-takers.ts";
import { takeReliably } from "../reliable-takers.ts";
import { checkSetting, drawSetting, runSetting, type Setting } from "../setting.ts";
import type { Shop } from "../shop.ts";
import { FAULT_KINDS, type SimProcess, type World } from "../sim.ts";
import { someWork } from "../some-work.ts";

/** Partitions on two servers. A process waits at both, and may get more than it has asked for. */
export const spread: World = {
  name: "spread",
  every: 3,
  // A message that goes to the other server is judged by another clock: steps would excuse everything.
  faults: FAULT_KINDS.filter((kind) => kind !== "clock-step"),
  servers: 2,
  skew: 0,
  events: 1400,
  run: async (sim) => {
    const { random } = sim;
    const setting = drawSetting(sim, { partitions: random.between(1, 4), takers: 1 });
    const changes = random.chance(0.5);
    await runSetting(sim, setting, {
      work: random.chance(0.5)
        ? offerInBursts
        : (shop, clerk) => someWork(shop, clerk, { most: 10, longest: 1500 }),
      meanwhile: async (shop, clerks) => {
        const shifts = Array.from({ length: random.between(1, 2) }, (_, i) =>
          workShift(shop, `visitor${i}`, setting),
        );
        const changers = changes ? clerks.slice(0, 1) : [];
        await Promise.all([...shifts, ...changers.map((clerk) => changeNowAndThen(shop, clerk))]);
      },
      settle: async (shop, clerk) => {
        if (changes) await expectEndOfChanges(shop, clerk, setting);
      },
    });
  },
  check: async (sim) => [
    ...(await checkSetting(sim, { isOrderedBy: true, isSpread: true })),
    ...abandoned(sim),
  ],
};

/** Offers messages that fall due together, on both servers. */
async function offerInBursts({ sim }: Shop, clerk: Clerk): Promise<void> {
  const { random } = sim;
  for (let burst = 0; burst < random.between(2, 4); burst++) {
    const delay = random.pick([0, 20, 500]);
    const all = Array.from({ length: random.between(2, 5) }, (_, i) => ({
      delay,
      partitionKey: `p${i}`,
    }));
    const pause = random.magnitude(1, 2000);
    if (!sim.wants()) continue;
    await clerk.offerMany(all);
    await sim.sleep(delay + pause);
  }
}

/** A process takes for a while, and closes: what has come for it by then goes back. */
async function workShift(shop: Shop, name: string, setting: Setting): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  await sim.sleep(random.magnitude(1, 1000));
  const length = random.magnitude(5, 3000);
  if (!sim.wants()) return;
  const process = shop.hire(name);
  take(shop, process, setting);
  await sim.sleep(length);
  if (process.isAlive) await shop.close(process);
}

function take(shop: Shop, process: SimProcess, setting: Setting): void {
  const { kind, maxAttempts, retry, leaseTimeout } = setting;
  if (kind === "plain") {
    if (shop.sim.random.chance(0.5)) takeOne(shop, process);
    else takePlainly(shop, process, shop.sim.random.pick(PLAIN_STYLES));
  } else {
    takeReliably(shop, process, {
      options: { maxAttempts, retry, leaseTimeout },
      style: "subscribe",
      longest: 200,
      sequenceOf: (n) => `sequence ${n % 3}`,
    });
  }
}

/** Takes one message, and works at it until the process ends. What else has come for it, others want to have. */
function takeOne({ sim, ledger, queue }: Shop, process: SimProcess): void {
  const ready = process.run(() => process.line.getBlockingQueue<number>(queue));
  void sim.go(`${process.name} takes one`, process, async () => {
    const n = await ledger.call(process, "take", {}, () => ready.take());
    if (n !== undefined) ledger.deliver(process, n);
  });
}
