import { expect, test } from "vitest";
import type { Delayline } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/** Milliseconds. */
const timeouts = { callTimeout: 500, unreachableTimeout: 500 };

/** Closes a client that cannot settle the deliveries that it holds. */
async function expectToClose(line: Delayline): Promise<void> {
  let isClosed = false;
  void line.close().then(() => (isClosed = true));
  await eventually(() => isClosed);
}

test("close() and a handler's ack end in time while Redis is away", async () => {
  const server = await startOwnServer();
  const line = newLineThatMayFail({ redis: server.url, ...timeouts });
  const queue = line.getReliableQueue<string>(uniqueName("away"));
  const [started, gate] = [new Gate(), new Gate()];
  queue.subscribe(async () => {
    started.open();
    await gate.opened;
  });
  await queue.offer("a", 0);
  await started.opened;
  await server.kill();
  gate.open();
  await expectToClose(line);
});

test("close() ends in time although Redis refuses to take a message back", async () => {
  const server = await startOwnServer();
  const name = uniqueName("refused");
  const admin = newRedis(server.url);
  const line = newLineThatMayFail({ redis: server.url, ...timeouts });
  const queue = line.getReliableQueue(name, { codec: "string" });
  expect(await queue.poll()).toBeUndefined();
  const { stream } = queueKeys(name);
  const entry = ["a", Buffer.alloc(24), "p", "a"] as const;
  await admin
    .multi()
    .xadd(stream, "*", ...entry)
    .xadd(stream, "*", ...entry, "n", 2, "d", 1)
    .exec();
  await admin.call("ACL", "SETUSER", "default", "-xadd");
  // The other message is a suspect. It waits until nothing else is held; by then nobody waits for it.
  expect(await queue.takeMany({ limit: 2 })).toHaveLength(1);
  await eventually(() => line.errors.length > 0);
  await expectToClose(line);
});
