/** What a user's compiler makes of the package's types. It is compiled, and never run. */
import * as main from "delayline";
import * as dashboard from "delayline/dashboard";
import * as events from "delayline/events";
import * as prometheus from "delayline/prometheus";
import * as redisson from "delayline/redisson";
import * as testing from "delayline/testing";

interface Order {
  readonly id: number;
}

export const entries = [main, dashboard, events, prometheus, redisson, testing];

export function codecs(line: main.Delayline): void {
  const text: main.DelayedQueue<string> = line.getDelayedQueue("q", { codec: "string" });
  line.getBlockingQueue<Order>("q", { codec: "json" });
  line.getReliableQueue<"a" | "b">("q", { codec: "string" });
  line.getDelayedQueue<Buffer>("q", { codec: "bytes" });
  // @ts-expect-error The codec "string" takes only strings.
  line.getDelayedQueue<Order>("q", { codec: "string" });
  // @ts-expect-error The codec "string" takes only strings.
  line.getBlockingQueue<string | number>("q", { codec: "string" });
  // @ts-expect-error The codec "bytes" takes only bytes.
  line.getReliableQueue<Order>("q", { codec: "bytes" });
  void text;
}

export function strict(line: main.Delayline, options: main.ReliableQueueOptions<Order>): void {
  const given = { exclusive: true, strict: true, partitions: 8 };
  line.getReliableQueue<Order>("q", given);
  line.getReliableQueue<Order>("q", options);
  line.getReliableQueue<Order>("q", { strict: false });
  // @ts-expect-error Only an exclusive queue can be strict.
  line.getReliableQueue<Order>("q", { strict: true });
}

const orders = main.defineQueue<Order>("orders", { codec: "json", partitions: 4 });
const texts = main.defineQueue("texts", { codec: "string" });
const notices = main.defineQueue<Order>("notices", { reliable: { maxAttempts: 4 } });
const lines = main.defineQueue("lines", { codec: "string", reliable: true });

export async function definitions(line: main.Delayline): Promise<void> {
  const order: Order = await line.open(orders).take();
  const text: string = await line.open(texts, { transfer: false }).take();
  const delivery: main.Delivery<Order> = await line.open(notices, { group: "mail" }).take();
  const said: string = (await line.open(lines).take()).payload;
  const payload: main.PayloadOf<typeof notices> = delivery.payload;
  const either: main.QueueDefinition<Order> = Math.random() < 0.5 ? orders : notices;
  await line.open(either).offer(order, 0);
  await line.stats(orders);
  await line.closeQueue(line.open(texts));
  // @ts-expect-error The payload of this queue is an order.
  await line.open(orders).offer("order", 0);
  // @ts-expect-error A name has no type; it is for getDelayedQueue.
  line.open("orders");
  // @ts-expect-error The definition decides the codec.
  line.open(orders, { codec: "json" });
  // @ts-expect-error Only an exclusive queue can be strict.
  main.defineQueue<Order>("strict", { reliable: { strict: true } });
  // @ts-expect-error The codec "string" takes only strings.
  main.defineQueue<Order>("orders", { codec: "string" });
  // @ts-expect-error Each process says it for itself.
  main.defineQueue<Order>("orders", { transfer: false });
  void [text, said, payload];
}

export async function reliableAlone(line: main.Delayline): Promise<void> {
  const [plain, reliable] = [line.open(orders), line.open(notices)];
  const order: Order = { id: 1 };
  const options: main.OfferOptions = { key: "order:1" };
  const traced: main.OfferOptions<main.MessageHeaders> = { headers: { traceparent: "00" } };
  const message: main.NewMessage<Order> = { payload: order, delay: 0 };
  const withHeaders: main.NewMessage<Order, main.MessageHeaders> = { ...message, ...traced };
  const concurrent: main.SubscribeOptions<Order> = { concurrency: 2, onError: () => undefined };
  for (const queue of [plain, reliable]) {
    await queue.offer(order, 0, options);
    await queue.offerMany([message]);
  }
  plain.subscribe((one) => void one.id, concurrent);
  reliable.subscribe((one) => void one.id, { ...concurrent, orderBy: ({ id }) => String(id) });
  reliable.subscribeBatch((all) => void all.length, {
    limit: 9,
    onError: (_, all) => all[0]?.ack(),
  });
  await reliable.offer(order, 0, traced);
  await reliable.offerMany([message, withHeaders]);
  // @ts-expect-error Messages of a plain queue carry no headers.
  await plain.offer(order, 0, traced);
  // @ts-expect-error Nor when they are many.
  await plain.offerMany([withHeaders]);
  // @ts-expect-error A plain queue has no sequences.
  plain.subscribe(() => undefined, { orderBy: ({ id }: Order) => String(id) });
  // @ts-expect-error Only a batch has a limit.
  reliable.subscribe(() => undefined, { limit: 9 });
  // @ts-expect-error A batch needs one.
  reliable.subscribeBatch(() => undefined, {});
  // @ts-expect-error Only route knows messages without a route.
  reliable.subscribe(() => undefined, { unknown: "ack" });
}

/** What calls return is inferred, and can be written down in the declarations of a user's own package. */
export async function inferred(line: main.Delayline) {
  const [plain, reliable] = [line.open(orders), line.open(notices)];
  const delivery = await reliable.take();
  return {
    plain,
    reliable,
    delivery,
    failures: delivery.failures,
    subscription: reliable.subscribe(() => undefined),
    routed: reliable.route({ a: () => undefined }),
    offered: await plain.offer({ id: 1 }, 0),
    found: await plain.get("k"),
    moved: await plain.reschedule("k", 0),
    cancelled: await plain.cancelWhere({ prefix: "k" }),
    made: await plain.makePlain(),
    taken: await plain.ready.pollFromAny(["q"]),
    stats: await plain.stats(),
    perPartition: (await plain.stats()).perPartition,
    partitions: await line.partitions("q"),
    forecast: await plain.forecast({ step: 1, count: 1 }),
    counters: plain.counters,
    handling: plain.counters.handling,
    handled: await reliable.handled("k"),
    letters: reliable.deadLetters,
    quarantine: plain.quarantine,
    order: plain.insertionOrder,
    schedules: plain.schedules,
    schedule: await plain.schedules.get("s"),
    declared: await plain.schedules.declare("s", {}, { revision: 1 }),
    upserted: await plain.schedules.upsert("s", { every: 1000, payload: { id: 1 } }),
    triggered: await plain.schedules.trigger("s"),
  };
}

export function told(error: unknown): string | number | undefined {
  if (error instanceof main.HandlerError) return error.queue;
  if (!(error instanceof main.DelaylineError)) return undefined;
  if (error.code === "HANDLER") return error.queue;
  if (error.code === "WRONG_HANDLE") return error.queue;
  if (error.code === "OFFER") return error.effect;
  // @ts-expect-error Another error has no such property.
  if (error.code === "REDIS") return error.queue;
  return error.code === "QUARANTINED" ? error.count : error.message;
}

/** Listeners that are declared apart from the calls that add them. */
export const listeners = {
  recovered: ({ error, duration }: events.RecoveredEvent) => void [error.reply, duration],
  restored: ({ queues }: events.RestoredEvent) => void queues.length,
  error: (...[error]: events.DelaylineEvents["error"]) => void error.code,
  script: (event: unknown) => void (event as events.ScriptEvent).duration,
};

export function listen(line: main.Delayline): void {
  line.on("recovered", listeners.recovered).on("restored", listeners.restored);
  line.on("error", listeners.error);
}
