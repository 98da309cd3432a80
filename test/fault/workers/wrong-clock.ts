/**
 * A worker with a wrong clock: moves the messages of a queue, and offers `COUNT` messages of its own.
 *
 * Sends the deadlines that its offers returned, and then waits to be killed.
 */
// oxlint-disable-next-line import/no-unassigned-import -- It does its work by being imported.
import "./shift-clock.ts";
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline } from "../../../src/index.ts";

endWithParent();
const { REDIS = "", QUEUE = "", COUNT = "0" } = process.env;
const line = new Delayline({ redis: REDIS, codec: "string" });
const queue = line.getDelayedQueue<string>(QUEUE);
process.on("message", () => void offerAll());
await tell({ now: Date.now() });

async function offerAll(): Promise<void> {
  const deadlines: [string, number][] = [];
  for (let i = 0; i < Number(COUNT); i++) {
    const payload = `${process.pid}-${i}`;
    const { deadline } = await queue.offer(payload, Math.random() * 2000);
    deadlines.push([payload, deadline]);
  }
  await tell({ deadlines });
}
