import { channel, tracingChannel } from "node:diagnostics_channel";
import { AsyncLocalStorage } from "node:async_hooks";
import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import type { HandleEvent, OfferEvent, SettleEvent, TakeEvent } from "../../../src/events.ts";
import type { BlockingQueue } from "../../../src/index.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";

/** Subscribes to a tracing channel until the test has finished. Returns the events of finished operations. */
function hear<Event extends object>(
  name: "offer" | "take" | "handle" | "settle",
  onStart: (event: Event) => void = () => {},
): Event[] {
  const ended: Event[] = [];
  const { start, asyncEnd } = tracingChannel(`delayline:${name}`);
  const [starting, ending] = [
    (event: unknown) => onStart(event as Event),
    (event: unknown) => void ended.push({ ...(event as Event) }),
  ];
  start.subscribe(starting);
  asyncEnd.subscribe(ending);
  onTestFinished(() => {
    start.unsubscribe(starting);
    asyncEnd.unsubscribe(ending);
  });
  return ended;
}

test("a subscriber may add headers to an offer beside the message's own, if there is room", async () => {
  const offers = hear<OfferEvent>("offer", ({ headers }) => {
    if (headers !== undefined) headers["trace"] = "added";
  });
  const queue = newLine().getReliableQueue<number>(uniqueName());
  const one = await queue.offer(1, 60_000, { key: "k" });
  const large = { a: "x".repeat(8_190) };
  const many = await queue.offerMany([
    { payload: 2, delay: 60_000, headers: { trace: "own" } },
    { payload: 3, delay: 60_000, headers: large },
    { payload: 4, delay: 60_000, headers: { other: "1" } },
  ]);
  const ids = [one, ...many].map(({ id }) => id);
  const found = await Promise.all(ids.map((id) => queue.get(id)));
  expect(found.map((message) => message?.headers)).toEqual([
    { trace: "added" },
    { trace: "own" },
    large,
    { trace: "added", other: "1" },
  ]);
  expect(offers).toMatchObject([
    { queue: queue.name, count: 1, key: "k", result: one },
    { queue: queue.name, count: 3, key: undefined, result: many },
  ]);
});

test("an offer to a plain queue has no headers, a failed one has its error, and illegal headers are dropped", async () => {
  const offers = hear<OfferEvent>("offer", ({ headers }) => Object.assign(headers ?? {}, { n: 1 }));
  const line = newLine();
  const plain = line.getDelayedQueue<number>(uniqueName());
  await plain.offerAt(1, Date.now() + 60_000);
  const signal = AbortSignal.abort(new Error("no time"));
  await expect(plain.offer(2, 0, { signal })).rejects.toThrow();
  const reliable = line.getReliableQueue<number>(uniqueName());
  const { id } = await reliable.offer(3, 60_000);
  expect(await reliable.get(id)).toMatchObject({ headers: undefined });
  expect(offers).toMatchObject([
    { queue: plain.name, headers: undefined },
    { queue: plain.name, error: { code: "OFFER" } },
    { queue: reliable.name },
  ]);
});

test("a handler runs within the wrappers of all subscribers, and its event has the thrown error", async () => {
  const storage = new AsyncLocalStorage<string>();
  const within = (name: string) => (event: HandleEvent) => {
    const { around = (run) => run() } = event;
    event.around = (run) => storage.run(`${storage.getStore() ?? ""}${name}`, () => around(run));
  };
  const handled = hear<HandleEvent>("handle", within("inner"));
  hear<HandleEvent>("handle", within("outer "));
  const line = newLineThatMayFail();
  const stores: (string | undefined)[] = [];
  const note = () => {
    stores.push(storage.getStore());
    throw new Error("bad");
  };
  const plain = line.getBlockingQueue<number>(uniqueName());
  plain.subscribe(note);
  await plain.put(1);
  const single = line.getReliableQueue<number>(uniqueName());
  single.route({ k: note });
  const batch = line.getReliableQueue<number>(uniqueName());
  batch.subscribeBatch(note, { limit: 10 });
  const { id } = await single.offer(2, 0, { key: "k", headers: { a: "1" } });
  await batch.offer(3, 0);
  await eventually(() => handled.length === 3);
  expect(stores).toEqual(Array.from({ length: 3 }, () => "outer inner"));
  const error = { message: "bad" };
  const of = ({ name }: { readonly name: string }) => handled.find(({ queue }) => queue === name);
  const unknown = { id: undefined, key: undefined, headers: {}, readyAt: undefined };
  expect(of(plain)).toMatchObject({ group: undefined, messages: [unknown], error });
  expect(of(single)).toMatchObject({
    group: "default",
    messages: [{ id, key: "k", headers: { a: "1" }, attempt: 1 }],
    error,
  });
  expect(of(batch)).toMatchObject({ messages: [{ attempt: 1 }], error });
  const [{ readyAt = NaN, takenAt = NaN } = {}] = of(single)?.messages ?? [];
  expect(takenAt - readyAt).toBeLessThan(30_000);
});

test("takes and settlements by the user are published, and those of a subscription are not", async () => {
  const [taken, settled] = [hear<TakeEvent>("take"), hear<SettleEvent>("settle")];
  const line = newLine();
  const plain = line.getBlockingQueue<number>(uniqueName());
  await plain.putMany([1, 2, 3, 4, 5, 6]);
  await plain.take();
  await plain.poll();
  await plain.poll(1000);
  await plain.takeMany({ limit: 1 });
  await plain.pollFromAny([]);
  await plain.drain();
  await plain.drain();
  expect(taken.map(({ messages }) => messages?.length)).toEqual([1, 1, 1, 1, 1, 1, 0]);

  const queue = line.getReliableQueue<number>(uniqueName(), { group: "g" });
  await queue.offerMany([1, 2].map((payload) => ({ payload, delay: 0 })));
  const first = await queue.take();
  await first.ack();
  await first.ack();
  for await (const delivery of queue) {
    await delivery.nack({ delay: 0 });
    break;
  }
  expect(taken.slice(7)).toMatchObject([
    { queue: queue.name, group: "g", messages: [{ id: first.id }] },
    { queue: queue.name, group: "g", messages: [{ attempt: 1 }] },
  ]);
  queue.subscribe(() => {});
  await eventually(() => queue.counters.acknowledged === 2);
  expect(settled).toMatchObject([
    { queue: queue.name, group: "g", operation: "ack", message: { id: first.id }, result: true },
    { operation: "ack", result: false },
    { operation: "nack", result: true },
  ]);
  expect(taken).toHaveLength(9);
});

test("no event has a payload, and a message of another queue is published under that queue's name", async () => {
  const [taken, handled] = [hear<TakeEvent>("take"), hear<HandleEvent>("handle")];
  const line = newLine();
  const [one, other] = [uniqueName(), uniqueName()].map((name) =>
    line.getBlockingQueue<string>(name),
  ) as [BlockingQueue<string>, BlockingQueue<string>];
  await other.put("secret");
  expect(await one.pollFromAny([other.name], 1000)).toMatchObject({ payload: "secret" });
  await other.put("secret");
  expect(await one.pollFromAny([other.name])).toMatchObject({ payload: "secret" });
  const reliable = line.getReliableQueue<string>(uniqueName());
  await reliable.offer("secret", 0);
  await (await reliable.take()).ack();
  expect(taken.map(({ queue }) => queue)).toEqual([other.name, other.name, reliable.name]);
  other.subscribe((payload) => payload);
  await other.put("secret");
  await eventually(() => handled.length === 1);
  expect(inspect([taken, handled], { depth: Infinity })).not.toContain("secret");
});

test("a subscriber whose `around` does not run the operation loses no message", async () => {
  hear<TakeEvent>("take", (event) => (event.around = () => undefined as never));
  hear<HandleEvent>("handle", (event) => (event.around = () => undefined as never));
  const queue = newLine().getBlockingQueue<number>(uniqueName());
  await queue.putMany([1, 2]);
  expect(await queue.take()).toBe(1);
  const handled: number[] = [];
  queue.subscribe((payload) => handled.push(payload));
  await eventually(() => handled.length === 1);
});

test("transfers are published, with the lateness of the oldest message", async () => {
  const events: unknown[] = [];
  const listener = (event: unknown) => void events.push(event);
  channel("delayline:transfer").subscribe(listener);
  onTestFinished(() => {
    channel("delayline:transfer").unsubscribe(listener);
  });
  const queue = newLine().getReliableQueue<number>(uniqueName(), { partitions: 1 });
  await queue.offer(1, 0);
  await queue.take();
  const number = expect.any(Number) as number;
  expect(events).toEqual([{ queue: queue.name, count: 1, lateness: number, at: number }]);
});
