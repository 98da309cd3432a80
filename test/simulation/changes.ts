import type { Clerk } from "./clerk.ts";
import type { Shop } from "./shop.ts";

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

/** Ends a change whose process has died: one that takes the ordinary queue in nobody else ends. */
export async function finishChange(
  { sim, ledger }: Shop,
  { process, queue }: Clerk,
): Promise<void> {
  for (let i = 0; i < 10; i++) {
    const isDone = await ledger.call(process, "setPartitions", { count: 2 }, async () => {
      await process.line.setPartitions(queue.name, 2);
      return true;
    });
    if (isDone) return;
    await sim.sleep(1000);
  }
}
