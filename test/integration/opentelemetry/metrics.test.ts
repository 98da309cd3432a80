import { expect, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { Telemetry } from "../../helpers/telemetry.ts";

const operation = (name: string) => ({ "messaging.operation.name": name });

test("offers, takes and handlers are counted and timed, and lateness is split in two", async () => {
  const telemetry = new Telemetry();
  const name = uniqueName();
  const queue = newLine().getReliableQueue<number>(name);
  await queue.offerMany([1, 2, 3].map((payload) => ({ payload, delay: 0 })));
  await (await queue.take()).ack();
  queue.subscribe(() => {});
  await eventually(() => queue.counters.acknowledged === 3);

  expect(await telemetry.points("messaging.client.sent.messages")).toMatchObject([
    { value: 3, attributes: { "messaging.destination.name": name } },
  ]);
  expect(await telemetry.points("messaging.client.consumed.messages")).toMatchObject([
    { value: 1, attributes: operation("take") },
    { value: 2, attributes: operation("process") },
  ]);
  expect(await telemetry.points("messaging.process.duration")).toMatchObject([
    { value: { count: 2 }, attributes: operation("process") },
  ]);
  expect(await telemetry.points("messaging.client.operation.duration")).toMatchObject([
    { value: { count: 1 }, attributes: operation("offer") },
    { value: { count: 1 }, attributes: operation("take") },
    { value: { count: 1 }, attributes: operation("ack") },
  ]);
  const lateness = await telemetry.points("delayline.delivery.lateness");
  for (const kind of ["system", "backlog"]) {
    const point = lateness.find(({ attributes }) => attributes["delayline.lateness.kind"] === kind);
    expect(point).toMatchObject({ value: { count: 3 } });
    // Seconds.
    expect(point).toMatchObject({ value: { sum: expect.closeTo(0, -1) } });
  }
});

test("the numbers of queues are observed once per queue", async () => {
  const line = newLine();
  const queue = line.getReliableQueue<number>(uniqueName());
  const plain = line.getDelayedQueue<number>(uniqueName());
  const telemetry = new Telemetry({
    queues: () => [queue, line.getReliableQueue(queue.name), plain],
  });
  await queue.offerMany([1, 2].map((payload) => ({ payload, delay: 60_000 })));
  await queue.offer(3, 0);
  await (await queue.take()).reject();
  await plain.pause();
  const of = async (metric: string, { name }: { readonly name: string }) => {
    const points = await telemetry.points(`delayline.${metric}`);
    return points.filter(({ attributes }) => attributes["messaging.destination.name"] === name);
  };
  const messages = await of("queue.messages", queue);
  expect(
    Object.fromEntries(
      messages.map(({ attributes, value }) => [attributes["delayline.message.state"], value]),
    ),
  ).toEqual({ delayed: 2, ready: 0, in_flight: 0, retrying: 0, dead: 1, quarantined: 0 });
  expect(await of("queue.overdue", queue)).toMatchObject([{ value: 0 }]);
  expect(await of("queue.overdue_age", queue)).toMatchObject([{ value: 0 }]);
  expect(await of("queue.consumers", queue)).toMatchObject([{ value: 1 }]);
  expect(await of("queue.consumers", plain)).toEqual([]);
  expect(await of("queue.paused", plain)).toMatchObject([{ value: 1 }]);
  const deliveries = await of("client.deliveries", queue);
  expect(deliveries.filter(({ value }) => value === 1)).toMatchObject([
    { attributes: { "delayline.delivery.outcome": "dead" } },
  ]);
});

test("a one-time iterable of queues is observed every time", async () => {
  const queue = newLine().getDelayedQueue<number>(uniqueName());
  const telemetry = new Telemetry({ queues: new Map([["orders", queue]]).values() });
  for (const delayed of [1, 2]) {
    await queue.offer(delayed, 60_000);
    const points = await telemetry.points("delayline.queue.messages");
    const state = { "delayline.message.state": "delayed" };
    expect(points).toContainEqual(
      expect.objectContaining({ value: delayed, attributes: expect.objectContaining(state) }),
    );
  }
});
