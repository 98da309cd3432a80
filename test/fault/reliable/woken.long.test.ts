import { expect, onTestFinished, test } from "vitest";
import type { Delivery, ReliableQueue } from "../../../src/index.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { redisUrl, uniqueName } from "../../helpers/redis.ts";
import { Roles } from "../../helpers/roles.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

/*
 * A process that stood still for longer than its lease has replies before it that are as old. What they hold may be
 * another process's by now. It must not begin it, neither before its first sign of life nor after.
 */

/** Takes messages in one way, and notes each that is handed out. */
type Style = (queue: ReliableQueue<string>, note: (delivery: Delivery<string>) => void) => unknown;

const STYLES: Readonly<Record<string, Style>> = {
  subscribe: (queue, note) => queue.subscribe((_payload, delivery) => note(delivery)),
  "subscribe with sequences": (queue, note) =>
    queue.subscribe((_payload, delivery) => note(delivery), { orderBy: () => "sequence" }),
  subscribeBatch: (queue, note) => queue.subscribeBatch((all) => all.forEach(note), { limit: 10 }),
  route: (queue, note) => queue.route({ k: (_payload, delivery) => note(delivery) }),
  take: async (queue, note) => {
    for (;;) note(await queue.take());
  },
  takeMany: async (queue, note) => {
    for (;;) (await queue.takeMany({ limit: 10, timeout: 10_000 })).forEach(note);
  },
  "for await": async (queue, note) => {
    for await (const delivery of queue) note(delivery);
  },
};

/** Which connections of the process carry something first when it goes on. */
const FIRST = ["blocking", "background"] as const;

const LEASE = 300;

/** A process stands still while another one takes over what it was sent. Returns what it begins when it goes on. */
async function wake(takeBy: Style, first: "blocking" | "background", partitions = 0) {
  const proxy = await startProxy(redisUrl());
  const roles = new Roles(proxy);
  const name = uniqueName();
  const options = { leaseTimeout: LEASE };
  const [office, sleeper, other] = [newLine(), newLineThatMayFail({ redis: proxy.url }), newLine()];
  if (partitions > 0) await office.setPartitions(name, partitions);
  const offers = office.getReliableQueue<string>(name, options);
  await offers.offer("before", 0, { key: "k:0" });
  const begun: string[] = [];
  const taking = takeBy(sleeper.getReliableQueue<string>(name, options), (delivery) => {
    begun.push(delivery.payload);
    void delivery.ack();
  });
  const ended = Promise.resolve(taking).catch(() => {});
  await eventually(() => expect(begun).toEqual(["before"]));
  await eventually(async () => expect((await offers.stats()).inFlight).toBe(0));

  let replies = 0;
  const letGo = async (role: "blocking" | "background", most: number) => {
    replies = 0;
    proxy.onReply = (_chunk, connection) => {
      if (roles.all(role).includes(connection)) replies++;
    };
    for (const connection of roles.all(role)) connection.letGo();
    await eventually(() => expect(replies).toBeGreaterThanOrEqual(most));
  };
  for (const connection of roles.all("background")) connection.hold();
  for (const connection of roles.all("blocking")) connection.hold("reply");
  await offers.offer("lost", 0, { key: "k:1" });
  await eventually(async () => expect((await offers.stats()).inFlight).toBe(1));
  const taken: number[] = [];
  const end = new Gate();
  onTestFinished(() => end.open());
  other.getReliableQueue<string>(name, options).subscribe(async (payload, { attempt }) => {
    if (payload === "lost") taken.push(attempt);
    await end.opened;
  });
  await eventually(() => expect(taken).toEqual([2]));
  // What was held back first, and for the signs of life, the next ones, too.
  const second = first === "blocking" ? "background" : "blocking";
  await letGo(first, first === "blocking" ? 1 : 4);
  await letGo(second, 1);

  await offers.offer("after", 0, { key: "k:2" });
  await eventually(() => expect(begun).toContain("after"));
  end.open();
  await Promise.all([sleeper.close(), other.close()]);
  await ended;
  expect(taken).toEqual([2]);
  return begun;
}

for (const partitions of [0, 2]) {
  for (const first of FIRST) {
    const kind = partitions === 0 ? "a queue" : `${partitions} partitions`;
    test(`${kind}, ${first} first: what was lost meanwhile is not begun`, async () => {
      const styles = Object.entries(STYLES).filter(
        ([style]) => partitions === 0 || style === "subscribe" || style === "take",
      );
      // One after the other: a process of many clients would stand still by itself.
      const all: [string, string[]][] = [];
      for (const [style, by] of styles) all.push([style, await wake(by, first, partitions)]);
      expect(all).toEqual(styles.map(([style]) => [style, ["before", "after"]]));
    });
  }
}
