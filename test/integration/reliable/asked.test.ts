import { expect, test } from "vitest";
import { RedisError, type Delivery } from "../../../src/index.ts";
import { ack, again, bury, retryLater } from "../../../src/lua/reliable/deliveries.ts";
import { collect } from "../../helpers/collect.ts";
import { newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy, type TcpProxy } from "../../helpers/tcp-proxy.ts";

// The user's code asks for a settlement, and the call rejects since the connection is lost. What it asked for holds,
// however the handler ends.

const asking = {
  ack: { script: ack, ask: (delivery: Delivery) => delivery.ack() },
  nack: {
    script: retryLater,
    ask: (delivery: Delivery) => delivery.nack({ reason: "busy", delay: 1 }),
  },
  reject: { script: bury, ask: (delivery: Delivery) => delivery.reject("hopeless") },
} as const;

/** Loses the next request for a script, or the reply to it. */
function lose(proxy: TcpProxy, what: "request" | "reply", sha: string): void {
  if (what === "reply") {
    void proxy.loseReplyTo(sha);
    return;
  }
  proxy.onRequest = (chunk) => {
    if (!chunk.includes(sha)) return "forward";
    proxy.onRequest = undefined;
    return "cut";
  };
}

/** A queue behind a proxy, with one message. */
async function newQueue(options: { readonly leaseTimeout?: number } = {}) {
  const proxy = await startProxy(redisUrl());
  const line = newLineThatMayFail({ redis: proxy.url, codec: "string" });
  const queue = line.getReliableQueue<string>(uniqueName(), { retry: [1], ...options });
  await queue.offer("x", 0);
  return { proxy, queue };
}

const told = ({ attempt, failures }: Pick<Delivery, "attempt" | "failures">) => [
  attempt,
  ...failures.map(({ reason }) => reason),
];

const isNothingLeft = async (queue: Awaited<ReturnType<typeof newQueue>>["queue"]) => {
  const { delayed, ready, inFlight, retries } = await queue.stats();
  expect([delayed, ready, inFlight, retries]).toEqual([0, 0, 0, 0]);
};

const cases = (["ack", "nack", "reject"] as const).flatMap((call) =>
  (["request", "reply"] as const).flatMap((what) =>
    (["throws its error", "throws another error", "returns"] as const).map(
      (end) => [call, what, end] as const,
    ),
  ),
);

test.each(cases)("%s, whose %s is lost, holds if the handler %s", async (call, what, end) => {
  const { proxy, queue } = await newQueue();
  const { script, ask } = asking[call];
  const attempts: unknown[] = [];
  let isRejected = false;
  const subscription = queue.subscribe(
    async (_, delivery) => {
      attempts.push(told(delivery));
      if (delivery.attempt > 1) return;
      lose(proxy, what, script.sha);
      const failure: unknown = await ask(delivery).then(
        () => undefined,
        (error: unknown) => error,
      );
      isRejected = failure instanceof RedisError;
      if (end === "throws its error") throw failure;
      if (end === "throws another error") throw new Error("later");
    },
    { onError: () => {} },
  );
  const expected = {
    ack: { attempts: [[1]], dead: [] },
    nack: { attempts: [[1], [2, "busy"]], dead: [] },
    reject: { attempts: [[1]], dead: [[1, "hopeless"]] },
  }[call];
  await eventually(async () => {
    expect(attempts).toHaveLength(expected.attempts.length);
    await isNothingLeft(queue);
  });
  await subscription.close();
  expect(isRejected).toBe(true);
  expect(attempts).toEqual(expected.attempts);
  expect((await collect(queue.deadLetters)).map(told)).toEqual(expected.dead);
});

test("a delivery that was taken by hand: the ack that was lost is tried again when its time is over", async () => {
  const { proxy, queue } = await newQueue({ leaseTimeout: 300 });
  const delivery = await queue.take();
  lose(proxy, "request", ack.sha);
  await expect(delivery.ack()).rejects.toThrow(RedisError);
  await eventually(() => isNothingLeft(queue));
  expect(await delivery.ack()).toBe(false);
  expect(await queue.deadLetters.size()).toBe(0);
});

test("in strict order, a nack that was lost holds, and the message comes again before the next one", async () => {
  const proxy = await startProxy(redisUrl());
  const line = newLineThatMayFail({ redis: proxy.url, codec: "string" });
  const queue = line.getReliableQueue<string>(uniqueName(), {
    partitions: 1,
    exclusive: true,
    strict: true,
    retry: [1],
  });
  for (const payload of ["x", "y"]) await queue.offer(payload, 0);
  const seen: unknown[] = [];
  queue.subscribe(
    async (payload, delivery) => {
      seen.push([payload, ...told(delivery)]);
      if (payload !== "x" || delivery.attempt > 1) return;
      lose(proxy, "request", again.sha);
      await delivery.nack({ reason: "busy" });
    },
    { onError: () => {} },
  );
  await eventually(() => isNothingLeft(queue));
  expect(seen).toEqual([
    ["x", 1],
    ["x", 2, "busy"],
    ["y", 1],
  ]);
});

test("the last call counts: a nack after an ack that was lost", async () => {
  const { proxy, queue } = await newQueue();
  const delivery = await queue.take();
  lose(proxy, "request", ack.sha);
  await expect(delivery.ack()).rejects.toThrow(RedisError);
  expect(await delivery.nack({ reason: "busy" })).toBe(true);
  expect(told(await queue.take())).toEqual([2, "busy"]);
});
