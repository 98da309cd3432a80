import { diag, DiagLogLevel, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { expect, onTestFinished, test, vi } from "vitest";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { Telemetry } from "../../helpers/telemetry.ts";

const common = (name: string) => ({
  "messaging.system.name": "delayline",
  "messaging.destination.name": name,
});

test("a handler's trace is a new one, linked to the offer's, and its context is active in the handler", async () => {
  const telemetry = new Telemetry();
  const name = uniqueName();
  const queue = newLine().getReliableQueue<string>(name);
  let active: string | undefined;
  queue.subscribe(async (_, delivery) => {
    active = trace.getActiveSpan()?.spanContext().spanId;
    await delivery.ack();
  });
  const tracer = telemetry.tracerProvider.getTracer("test");
  const { id } = await tracer.startActiveSpan("request", async (request) => {
    const result = await queue.offer("x", 0, { key: "k", headers: { own: "1" } });
    request.end();
    return result;
  });
  await eventually(() => telemetry.named(`process ${name}`).length === 1);
  const [request] = telemetry.named("request");
  const [offer] = telemetry.named(`offer ${name}`);
  const [process] = telemetry.named(`process ${name}`);
  const [ack] = telemetry.named(`ack ${name}`);

  expect(offer?.kind).toBe(SpanKind.PRODUCER);
  expect(offer?.parentSpanContext?.spanId).toBe(request?.spanContext().spanId);
  expect(offer?.attributes).toEqual({
    ...common(name),
    "messaging.operation.name": "offer",
    "messaging.operation.type": "send",
    "messaging.message.id": id,
    "delayline.message.key": "k",
  });
  expect(process?.kind).toBe(SpanKind.CONSUMER);
  expect(process?.parentSpanContext).toBeUndefined();
  expect(process?.spanContext().traceId).not.toBe(offer?.spanContext().traceId);
  expect(process?.links.map((link) => link.context.spanId)).toEqual([offer?.spanContext().spanId]);
  expect(process?.attributes).toEqual({
    ...common(name),
    "messaging.operation.name": "process",
    "messaging.operation.type": "process",
    "messaging.consumer.group.name": "default",
    "messaging.message.id": id,
    "delayline.message.key": "k",
    "delayline.message.attempt": 1,
  });
  expect(active).toBe(process?.spanContext().spanId);
  expect(ack?.kind).toBe(SpanKind.CLIENT);
  expect(ack?.parentSpanContext?.spanId).toBe(process?.spanContext().spanId);
  expect(ack?.attributes).toMatchObject({ "messaging.operation.type": "settle" });
});

test("messages taken by hand get a span for a take that finds any, and one for each settlement", async () => {
  const telemetry = new Telemetry();
  const name = uniqueName();
  const queue = newLine().getReliableQueue<number>(name);
  expect(await queue.poll(20)).toBeUndefined();
  await queue.offerMany([1, 2].map((payload) => ({ payload, delay: 0 })));
  await eventually(async () => (await queue.stats()).ready === 2);
  const [first, second] = await queue.takeMany({ limit: 2 });
  expect(first?.headers).toEqual({ traceparent: expect.any(String) });
  await first?.extend(1000);
  await first?.nack({ delay: 60_000 });
  await second?.reject("bad");
  await second?.ack();
  // The first poll found nothing, and has no span.
  const operations = ["offer", "take", "extend", "nack", "reject", "ack"];
  expect(telemetry.names).toEqual(operations.map((operation) => `${operation} ${name}`));
  const [offer] = telemetry.named(`offer ${name}`);
  const [take] = telemetry.named(`take ${name}`);
  const [ack] = telemetry.named(`ack ${name}`);
  expect(offer?.attributes["messaging.batch.message_count"]).toBe(2);
  expect(take?.attributes).toMatchObject({
    ...common(name),
    "messaging.operation.type": "receive",
    "messaging.batch.message_count": 2,
  });
  const offered = offer?.spanContext().spanId;
  expect(take?.links.map((link) => link.context.spanId)).toEqual([offered, offered]);
  expect(ack?.attributes["delayline.settled"]).toBe(false);
});

test("a refused offer and a throwing handler make error spans", async () => {
  const telemetry = new Telemetry();
  const name = uniqueName();
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<number>(name, { retry: [60_000] });
  queue.subscribe(() => {
    throw new TypeError("bad order");
  });
  await queue.offer(1, 0);
  await eventually(() => telemetry.named(`process ${name}`).length === 1);
  const [process] = telemetry.named(`process ${name}`);
  expect(process?.status).toEqual({ code: SpanStatusCode.ERROR, message: "bad order" });
  expect(process?.attributes["error.type"]).toBe("TypeError");
  expect(process?.events.map((event) => event.name)).toEqual(["exception"]);

  const aborted = AbortSignal.abort(new Error("no time"));
  await expect(queue.offer(2, 0, { signal: aborted })).rejects.toThrow();
  const [, refused] = telemetry.named(`offer ${name}`);
  expect(refused?.status.code).toBe(SpanStatusCode.ERROR);
  expect(refused?.attributes["error.type"]).toBe("OFFER");
  expect(await telemetry.points("messaging.client.sent.messages")).toMatchObject([
    { value: 1, attributes: common(name) },
    { value: 1, attributes: { "error.type": "OFFER" } },
  ]);
});

test("a wait cut short by a signal or by closing the client makes no error and no span", async () => {
  const telemetry = new Telemetry();
  const line = newLine();
  const [plain, reliable] = [
    line.getBlockingQueue(uniqueName()),
    line.getReliableQueue(uniqueName()),
  ];
  const aborted = new AbortController();
  const waits = [plain.take({ signal: aborted.signal }), reliable.take(aborted)];
  const loops = [plain, reliable].map(async (queue) => {
    for await (const _ of queue);
  });
  aborted.abort();
  await Promise.allSettled(waits);
  const timeout = plain.take({ signal: AbortSignal.timeout(1) });
  await expect(timeout).rejects.toThrow(expect.objectContaining({ name: "TimeoutError" }));
  await line.close();
  await Promise.all(loops);

  expect(telemetry.names).toEqual([]);
  const takes = await telemetry.points("messaging.client.operation.duration");
  expect(takes.map(({ value }) => value)).toMatchObject([{ count: 3 }, { count: 2 }]);
  for (const { attributes } of takes) expect(attributes).not.toHaveProperty("error.type");
});

test("a batch is one span, linked to the offers of all its messages", async () => {
  const telemetry = new Telemetry();
  const name = uniqueName();
  const queue = newLine().getReliableQueue<number>(name);
  await Promise.all([queue.offer(1, 0), queue.offer(2, 0, { headers: { traceparent: "mine" } })]);
  await eventually(async () => (await queue.stats()).ready === 2);
  queue.subscribeBatch(() => {}, { limit: 2 });
  await eventually(() => telemetry.named(`process ${name}`).length === 1);
  const [process] = telemetry.named(`process ${name}`);
  expect(process?.attributes["messaging.batch.message_count"]).toBe(2);
  // The second message's own header wins, and is not a valid context.
  const [first] = telemetry.named(`offer ${name}`);
  expect(process?.links.map((link) => link.context.spanId)).toEqual([first?.spanContext().spanId]);
});

test("a plain queue carries no context: its spans stand alone, as do those of its partitions", async () => {
  const telemetry = new Telemetry();
  const [name, divided] = [uniqueName(), uniqueName()];
  const line = newLine();
  line.getBlockingQueue(name).subscribe(() => {});
  await line.getDelayedQueue(name).offer("x", 0);
  line.getBlockingQueue(divided, { partitions: 2 }).subscribe(() => {});
  await line.getDelayedQueue(divided, { partitions: 2 }).offer("x", 0);
  await eventually(() => telemetry.named(`process ${divided}`).length === 1);
  await eventually(() => telemetry.named(`process ${name}`).length === 1);
  const [process] = telemetry.named(`process ${name}`);
  expect(process?.links).toEqual([]);
  expect(process?.attributes).toEqual({
    ...common(name),
    "messaging.operation.name": "process",
    "messaging.operation.type": "process",
  });
});

const silent = () => {};
const nothing = () => Promise.resolve();
const broken = () => {
  throw new Error("broken");
};

test("a propagator and a processor that throw are reported, and disturb nothing", async () => {
  const error = vi.fn<(message: string) => void>();
  diag.setLogger(
    { error, warn: silent, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.ERROR },
  );
  onTestFinished(() => diag.disable());
  const processor = { onStart: silent, onEnd: broken, forceFlush: nothing, shutdown: nothing };
  const propagator = { inject: broken, extract: broken, fields: () => [] };
  const telemetry = new Telemetry({}, { propagator, processors: [processor] });
  const name = uniqueName();
  const queue = newLine().getReliableQueue<number>(name);
  queue.subscribe(() => {});
  await queue.offer(1, 0);
  await eventually(() => queue.counters.acknowledged === 1);

  await eventually(() => telemetry.named(`process ${name}`).length === 1);
  expect(telemetry.named(`offer ${name}`)).toHaveLength(1);
  expect(await telemetry.points("messaging.process.duration")).toHaveLength(1);
  const told = new Set(error.mock.calls.map(([message]) => message));
  expect(told).toEqual(
    new Set(
      ["inject a context", "extract a context", "end a span"].map(
        (it) => `delayline: cannot ${it}`,
      ),
    ),
  );
});
