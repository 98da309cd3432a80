import { PartitionNames } from "../../src/partitions/ring/ring.ts";
import { isWithOrdinary, parseFact } from "../../src/partitions/ring/fact.ts";
import { queueKeys } from "../../src/queue/keys.ts";
import type { Clerk } from "./clerk.ts";
import type { Setting } from "./setting.ts";
import type { Shop } from "./shop.ts";
import type { Sim, SimProcess } from "./sim.ts";

/** Changes the number of partitions once or twice. */
export async function changeNowAndThen({ sim, ledger }: Shop, clerk: Clerk): Promise<void> {
  const { random } = sim;
  await sim.go(`${clerk.process.name} changes the number`, clerk.process, async () => {
    for (let i = 0; i < random.between(1, 2); i++) {
      await sim.sleep(random.magnitude(1, 3000));
      const count = random.between(1, 4);
      if (!sim.wants()) continue;
      const { process } = clerk;
      await ledger.call(process, "setPartitions", { count }, () =>
        process.line.setPartitions(clerk.queue.name, count),
      );
    }
  });
}

/** Changes of the number that come at about the same time. */
export interface Changing {
  /** One process asks for each. */
  readonly counts: readonly number[];
  /** After how many milliseconds a process dies that works on it; undefined if none does. */
  readonly life: number | undefined;
  /** Whether the network is slow. */
  readonly isSlow: boolean;
}

/** Several processes change the number at about the same time. One of them is there for that alone. */
export async function changeTogether(
  shop: Shop,
  [office]: readonly Clerk[],
  { counts, life, isSlow }: Changing,
): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  const changer = shop.hire("changer");
  const processes = [changer, office?.process ?? changer];
  const changes = counts.map(async (count, i) => {
    const process = processes[i] ?? changer;
    const head = i === 0 ? 0 : random.magnitude(0.1, 30);
    await sim.go(`${process.name} changes the number`, process, async () => {
      await sim.sleep(head);
      if (sim.wants()) await setPartitions(shop, process, count);
    });
  });
  const death = (async () => {
    if (life === undefined) return;
    await sim.sleep(life);
    changer.crash();
  })();
  if (isSlow) {
    for (let i = 0; i < 6; i++) {
      sim.fault({ kind: "delay", duration: random.magnitude(5, 1500) });
      await sim.sleep(random.magnitude(0.1, 10));
    }
  }
  await Promise.all([...changes, death]);
}

/**
 * Waits until no change is under way: whoever has the queue open finishes that of a dead process. Only one that takes
 * the ordinary queue in is finished by the next call. Such a call would also mend what a change has left behind, so if
 * nobody has the ordinary queue open, every other run ends without one.
 */
export async function expectEndOfChanges(
  shop: Shop,
  clerk: Pick<Clerk, "process">,
  { partitions, isMixed }: Pick<Setting, "partitions" | "isMixed"> = UNKNOWN,
): Promise<void> {
  const { sim } = shop;
  const isLeftAlone = partitions > 0 && !isMixed && sim.random.chance(0.5);
  const until = sim.elapsed + TAKEN_OVER_WITHIN;
  const keys = queueKeys(new PartitionNames(shop.queue).at(0));
  for (;;) {
    const found = await sim.outside(() => sim.control.get(keys.partitions));
    const fact = parseFact(found ?? "");
    if (fact === undefined || fact.state === "stable") break;
    if (isWithOrdinary(fact)) break;
    if (sim.elapsed > until) {
      sim.note({ abandoned: found });
      break;
    }
    await sim.sleep(500);
  }
  if (!isLeftAlone) await finishChange(shop, clerk);
}

/** Perhaps the ordinary queue was in use. */
const UNKNOWN = { partitions: 0, isMixed: false };

/** The changes that nobody has finished. */
export function abandoned({ history }: Sim): string[] {
  return history.flatMap(({ event }) =>
    "abandoned" in event ? [`nobody finishes the change: ${String(event["abandoned"])}`] : [],
  );
}

/** Takes in what is left in the ordinary queue: a change that does so is finished by nobody else. */
async function finishChange(shop: Shop, { process }: Pick<Clerk, "process">): Promise<void> {
  for (let i = 0; i < 10; i++) {
    if (await setPartitions(shop, process, 2)) return;
    await shop.sim.sleep(1000);
  }
}

/** Returns whether it has worked. */
export async function setPartitions(
  shop: Shop,
  process: SimProcess,
  count: number,
): Promise<boolean> {
  const isDone = await shop.ledger.call(process, "setPartitions", { count }, async () => {
    await process.line.setPartitions(shop.queue, count);
    return true;
  });
  return isDone === true;
}

/** Milliseconds within which others finish the change of a process that has died. */
const TAKEN_OVER_WITHIN = 30_000;
