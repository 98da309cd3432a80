import { expect, test } from "vitest";
import { FactWatch } from "../../../src/partitions/parts/fact-watch.ts";
import { formatFact, ORDINARY } from "../../../src/partitions/ring/fact.ts";
import { newOpenQueue } from "../../helpers/open-queue.ts";
import { uniqueName } from "../../helpers/redis.ts";

test("those who wait for the fact go on in the order in which they came, though it is learned meanwhile", async () => {
  const name = uniqueName();
  const ordinary = newOpenQueue(name).open;
  const first = newOpenQueue(`{${name}/0}`).open;
  const at = (partition: number) => (partition === ORDINARY ? ordinary : first);
  const watch = new FactWatch(name, first, { partitions: 2, servers: 1, at }, () => {});
  const order: string[] = [];
  const wait = async (who: string, signal?: AbortSignal) => {
    const { to } = await watch.known({ signal });
    order.push(`${who} ${to}`);
  };

  const waits = [wait("with a signal", new AbortController().signal), wait("without")];
  watch.learn(formatFact({ epoch: 1, to: 2, from: 2, state: "stable", servers: 1 }));
  waits.push(wait("later"));
  await Promise.all(waits);

  expect(order).toEqual(["with a signal 2", "without 2", "later 2"]);
});
