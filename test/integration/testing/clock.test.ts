import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { replaceRuntime } from "../../../src/time/runtime.ts";
import { newLine } from "../../helpers/delayline.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { DAY, HOUR, MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

const EIGHT = "2026-03-28T08:00:00.000Z";

test("time stands still until it is let pass", async () => {
  const clock = await newClock({ now: EIGHT });
  const line = newLine();
  const name = uniqueName("still");
  await line.getDelayedQueue<string>(name).offer("soon", 20);
  const ready = line.getBlockingQueue<string>(name);
  await pause(100);
  await clock.settled();
  expect(await ready.poll(0)).toBeUndefined();
  expect(clock.now.toISOString()).toBe(EIGHT);
  await clock.advance(19);
  expect(await ready.poll(0)).toBeUndefined();
  await clock.advance(1);
  expect(await ready.poll(0)).toBe("soon");
});

test("a ladder of three days: each attempt at its instant, then a dead letter", async () => {
  const clock = await newClock({ now: EIGHT });
  const line = newLine();
  const queue = line.getReliableQueue<string>(uniqueName("ladder"), {
    retry: [2 * MINUTE, HOUR, 3 * DAY],
    maxAttempts: 4,
  });
  const attempts: string[] = [];
  const fail = (_: string, { attempt }: { attempt: number }) => {
    attempts.push(`${attempt} at ${clock.now.toISOString()}`);
    throw new Error("still closed");
  };
  queue.subscribe(fail, { onError: () => {} });
  await queue.offer("notice", 0);
  await clock.advance("4 days");
  expect(attempts).toEqual([
    "1 at 2026-03-28T08:00:00.000Z",
    "2 at 2026-03-28T08:02:00.000Z",
    "3 at 2026-03-28T09:02:00.000Z",
    "4 at 2026-03-31T09:02:00.000Z",
  ]);
  const dead = [];
  for await (const letter of queue.deadLetters) dead.push([letter.payload, letter.reason]);
  expect(dead).toEqual([["notice", "still closed"]]);
});

test("a ladder that succeeds in the end leaves nothing", async () => {
  const clock = await newClock();
  const line = newLine();
  const queue = line.getReliableQueue<string>(uniqueName("ladder"), { retry: [MINUTE, DAY] });
  let attempts = 0;
  const handle = () => {
    attempts++;
    if (attempts < 3) throw new Error("not yet");
  };
  queue.subscribe(handle, { onError: () => {} });
  await queue.offer("notice", HOUR);
  await clock.advance(HOUR + MINUTE + DAY - 1);
  expect(attempts).toBe(2);
  await clock.advance(1);
  expect(attempts).toBe(3);
  const { delayed, ready, inFlight, dead } = await queue.stats();
  expect({ delayed, ready, inFlight, dead }).toEqual({
    delayed: 0,
    ready: 0,
    inFlight: 0,
    dead: 0,
  });
});

test("a reminder after 30 days, on the day", async () => {
  const clock = await newClock({ now: EIGHT });
  const line = newLine();
  const name = uniqueName("reminder");
  const days: string[] = [];
  line.getBlockingQueue<string>(name).subscribe(() => void days.push(clock.now.toISOString()));
  await line.getDelayedQueue<string>(name).offer("renew", 30 * DAY);
  await clock.advance("29 days 23h 59m");
  expect(days).toEqual([]);
  await clock.advance("1 min");
  expect(days).toEqual(["2026-04-27T08:00:00.000Z"]);
});

test("three days with a hundred messages on the way, in order and at their instants", async () => {
  const clock = await newClock({ now: EIGHT });
  const line = newLine();
  const queue = line.getReliableQueue<number>(uniqueName("hundred"));
  const seen: number[] = [];
  queue.subscribe((due) => void seen.push(clock.now.getTime() - due));
  const dues = Array.from(
    { length: 100 },
    (_, i) => Math.floor(((i * 37) % 100) * 0.0099 * 3 * DAY) + 1,
  );
  const start = clock.now.getTime();
  await Promise.all(dues.map((due) => queue.offer(start + due, due)));
  const before = process.cpuUsage();
  await clock.advance("3 days");
  const { user, system } = process.cpuUsage(before);
  expect(seen).toEqual(dues.map(() => 0));
  // Processor time, since a busy machine may take any time. It takes a tenth of that.
  expect((user + system) / 1000).toBeLessThan(5_000);
});

test("an idle month is a few steps, however many queues are open", async () => {
  const clock = await newClock();
  // Of its own, since all its commands are counted.
  const { url } = await startOwnServer();
  const line = newLine({ redis: url });
  const redis = newRedis(url);
  for (let i = 0; i < 5; i++) {
    line.getReliableQueue<string>(uniqueName("idle")).subscribe(() => {});
    line.getBlockingQueue<string>(uniqueName("idle")).subscribe(() => {});
  }
  await clock.advance(HOUR);
  const commands = async () =>
    Number(/total_commands_processed:(\d+)/.exec(await redis.info())?.[1]);
  const before = await commands();
  await clock.advance("30 days");
  // 30 days of sweeps alone would be 86,400 for each queue.
  expect((await commands()) - before).toBeLessThan(10_000);
});

test("a debounce by key: each replacement postpones, maxWait bounds it", async () => {
  const clock = await newClock({ now: EIGHT });
  const line = newLine();
  const name = uniqueName("debounce");
  const saved: string[] = [];
  line
    .getBlockingQueue<string>(name)
    .subscribe(
      (text) => void saved.push(`${text} after ${clock.now.getTime() - Date.parse(EIGHT)}`),
    );
  const drafts = line.getDelayedQueue<string>(name);
  for (let i = 1; i <= 4; i++) {
    const options = { key: "draft:1", onDuplicate: "replace", maxWait: 30 * SECOND } as const;
    await drafts.offer(`version ${i}`, 10 * SECOND, options);
    await clock.advance(8 * SECOND);
  }
  expect(saved).toEqual(["version 4 after 30000"]);
});

test("a paused queue keeps its messages, and resumes", async () => {
  const clock = await newClock();
  const line = newLine();
  const name = uniqueName("paused");
  const seen: string[] = [];
  line.getBlockingQueue<string>(name).subscribe((text) => void seen.push(text));
  const queue = line.getDelayedQueue<string>(name);
  await queue.offer("while paused", MINUTE);
  await queue.pause();
  await clock.advance("1 day");
  expect(seen).toEqual([]);
  await queue.resume();
  await clock.settled();
  expect(seen).toEqual(["while paused"]);
});

test("nack with a delay comes back after it, and the time of the attempt tells it", async () => {
  const clock = await newClock({ now: EIGHT });
  const line = newLine();
  const queue = line.getReliableQueue<string>(uniqueName("nack"));
  await queue.offer("notice", 0);
  const first = await clock.until(queue.take());
  expect(await first.nack({ delay: 5 * HOUR })).toBe(true);
  const taking = queue.take();
  await clock.until(taking);
  expect(clock.now.toISOString()).toBe("2026-03-28T13:00:00.000Z");
  expect((await taking).attempt).toBe(2);
  expect(await (await taking).ack()).toBe(true);
});

test("poll waits virtual time", async () => {
  const clock = await newClock({ now: EIGHT });
  const line = newLine();
  const ready = line.getBlockingQueue<string>(uniqueName("poll"));
  expect(await clock.until(ready.poll(45 * MINUTE))).toBeUndefined();
  expect(clock.now.toISOString()).toBe("2026-03-28T08:45:00.000Z");
  const many = ready.takeMany({ limit: 10, timeout: 10 * SECOND });
  expect(await clock.until(many)).toEqual([]);
  expect(clock.now.toISOString()).toBe("2026-03-28T08:45:10.000Z");
});

test("a delivery that was taken by hand is given back when its time is over", async () => {
  const clock = await newClock();
  const line = newLine();
  const queue = line.getReliableQueue<string>(uniqueName("by-hand"), { leaseTimeout: HOUR });
  await queue.offer("notice", 0);
  const first = await clock.until(queue.take());
  await clock.advance(HOUR - 1);
  expect(first.signal.aborted).toBe(false);
  expect(await queue.poll(0)).toBeUndefined();
  await clock.advance(1);
  expect(first.signal.aborted).toBe(true);
  const second = await clock.until(queue.poll(SECOND));
  expect(second?.attempt).toBe(2);
  expect(await first.ack()).toBe(false);
});

test("a handler that sleeps longer than its lease keeps it", async () => {
  const clock = await newClock();
  const [line, other] = [newLine(), newLine()];
  const name = uniqueName("long");
  const seen: string[] = [];
  const handle = async (
    text: string,
    { attempt, signal }: { attempt: number; signal: AbortSignal },
  ) => {
    seen.push(`${text} ${attempt}`);
    await clock.sleep("30 min");
    seen.push(signal.aborted ? "lost" : "done");
  };
  for (const one of [line, other]) {
    one.getReliableQueue<string>(name, { leaseTimeout: 5 * MINUTE }).subscribe(handle);
  }
  await line.getReliableQueue<string>(name).offer("render", 0);
  await clock.advance("29 min");
  expect(seen).toEqual(["render 1"]);
  expect((await line.getReliableQueue<string>(name).stats()).inFlight).toBe(1);
  await clock.advance("2 min");
  expect(seen).toEqual(["render 1", "done"]);
  expect((await line.getReliableQueue<string>(name).stats()).inFlight).toBe(0);
});

test("next stops where something happens, and tells the instant", async () => {
  const clock = await newClock({ now: EIGHT });
  const line = newLine();
  const queue = line.getDelayedQueue<string>(uniqueName("next"));
  await queue.offer("second", 2 * HOUR);
  await queue.offer("first", HOUR);
  expect(await clock.next()).toEqual(new Date("2026-03-28T09:00:00Z"));
  expect(await queue.size()).toBe(1);
  expect((await clock.next()).toISOString()).toBe("2026-03-28T10:00:00.000Z");
  expect(await queue.size()).toBe(0);
  await expect(clock.next()).rejects.toThrow("nothing to wait for");
});

test("until passes on the outcome, and rejects if nothing is left that could settle the promise", async () => {
  const clock = await newClock();
  const line = newLine();
  const ready = line.getBlockingQueue<string>(uniqueName("until"));
  const never = ready.take();
  await expect(clock.until(never)).rejects.toThrow("nothing is left that could settle");
  await line.getDelayedQueue<string>(ready.name).offer("at last", DAY);
  expect(await clock.until(never)).toBe("at last");
  await expect(clock.until(Promise.reject(new Error("refused")))).rejects.toThrow("refused");
});

test("advanceTo and offerAt meet on the night when clocks go forward", async () => {
  const zone = process.env["TZ"];
  process.env["TZ"] = "Europe/Berlin";
  onTestFinished(() => {
    if (zone === undefined) delete process.env["TZ"];
    else process.env["TZ"] = zone;
  });
  const clock = await newClock({ now: new Date(2026, 2, 28, 23, 0) });
  const line = newLine();
  const name = uniqueName("night");
  const seen: string[] = [];
  line.getBlockingQueue<string>(name).subscribe((text) => {
    seen.push(`${text} ${clock.now.getHours()}:${String(clock.now.getMinutes()).padStart(2, "0")}`);
  });
  const queue = line.getDelayedQueue<string>(name);
  await queue.offerAt("before", new Date(2026, 2, 29, 1, 59));
  await queue.offerAt("after", new Date(2026, 2, 29, 3, 0));
  await queue.offerAt("morning", new Date(2026, 2, 29, 8, 0));
  await clock.advanceTo(new Date(2026, 2, 29, 1, 59));
  expect(seen).toEqual(["before 1:59"]);
  await clock.advance("1 min");
  expect(seen).toEqual(["before 1:59", "after 3:00"]);
  await clock.advance("5 hours");
  expect(seen).toEqual(["before 1:59", "after 3:00", "morning 8:00"]);
});

test("a message that Redis holds knows the virtual time: deadlines, ages, entries of the stream", async () => {
  const clock = await newClock({ now: EIGHT });
  const line = newLine();
  const redis = newRedis();
  const queue = line.getReliableQueue<string>(uniqueName("ages"));
  const { id } = await queue.offer("notice", HOUR);
  expect((await queue.get(id))?.deadline).toBe(Date.parse(EIGHT) + HOUR);
  await clock.advance(HOUR);
  const [[entry] = [""]] = await redis.xrange(`delayline_stream:{${queue.name}}`, "-", "+");
  expect(Number(entry.split("-")[0])).toBe(Date.parse(EIGHT) + HOUR);
  const delivery = await clock.until(queue.take());
  await clock.advance(10 * SECOND);
  expect((await queue.stats()).oldestInFlightAge).toBe(10 * SECOND);
  expect(delivery.leaseEndsAt).toBe(Date.parse(EIGHT) + HOUR + 30 * SECOND);
  await delivery.ack();
});

test("keys that expire age with the clock, and keep what is left", async () => {
  const clock = await newClock();
  const line = newLine();
  const redis = newRedis();
  const name = uniqueName("expire");
  const queue = line.getDelayedQueue<string>(name);
  line.getBlockingQueue<string>(name).subscribe(() => {});
  await queue.offer("one", SECOND);
  await clock.advance(SECOND);
  // It says for 30 days who has moved messages last.
  const { mover } = queueKeys(name);
  const left = await redis.ttl(mover);
  expect(left).toBeGreaterThan(29 * 86_400);
  await clock.advance("30 min");
  expect(left - (await redis.ttl(mover))).toBeGreaterThan(1700);
  expect(left - (await redis.ttl(mover))).toBeLessThan(1900);
  await redis.expire(mover, 1800);
  await clock.advance("30 min");
  expect(await redis.exists(mover)).toBe(0);
});

/** Two clients offer in turn, each first attempt fails; returns the order of the attempts. */
async function orderOfAttempts(): Promise<string[]> {
  const clock = await newClock({ now: EIGHT });
  const [line, other] = [newLine(), newLine()];
  const name = uniqueName("order");
  const seen: string[] = [];
  const queue = line.getReliableQueue<string>(name, { retry: [HOUR] });
  queue.subscribe(
    (text, { attempt }) => {
      seen.push(`${text}${attempt}`);
      if (attempt === 1) throw new Error("again");
    },
    { onError: () => {} },
  );
  for (let i = 0; i < 10; i++) {
    const from = i % 2 === 0 ? queue : other.getReliableQueue<string>(name);
    await from.offer(`${i}/`, 30 * MINUTE);
  }
  await clock.advance("2 hours");
  await Promise.all([line.close(), other.close()]);
  await clock.close();
  return seen;
}

test("the same test gives the same order every time, with two clients", async () => {
  const first = await orderOfAttempts();
  expect(first).toHaveLength(20);
  expect(first.slice(0, 10)).toEqual(Array.from({ length: 10 }, (_, i) => `${i}/1`));
  for (let i = 0; i < 4; i++) expect((await orderOfAttempts()).join(" ")).toBe(first.join(" "));
});

test("afterwards time is real, and nothing of the clock is left in Redis", async () => {
  const { url } = await startOwnServer();
  const redis = newRedis(url);
  const clock = await newClock({ now: "2031-01-01" });
  const line = newLine({ redis: url });
  const name = uniqueName("left");
  const queue = line.getReliableQueue<string>(name);
  const seen: string[] = [];
  queue.subscribe((text) => void seen.push(text));
  await queue.offer("virtual", DAY);
  await clock.advance("1 day");
  expect(seen).toEqual(["virtual"]);
  await line.close();
  await clock.close();
  await clock.close();
  const clients = String(await redis.client("LIST"));
  expect(clients).not.toContain("test-clock");
  const held = (await redis.keys("*")).filter((key) => /clock/i.test(key) && !key.includes(name));
  expect(held).toEqual([]);

  const real = newLine();
  const again = real.getDelayedQueue<string>(uniqueName("real"));
  const { id } = await again.offer("real", 300);
  const message = await again.get(id);
  expect(Math.abs((message?.deadline ?? 0) - Date.now())).toBeLessThan(10 * SECOND);
  const startedAt = performance.now();
  expect(await real.getBlockingQueue<string>(again.name).poll(30 * SECOND)).toBe("real");
  expect(performance.now() - startedAt).toBeGreaterThan(100);
});

test("a client that outlives the clock goes on in real time", async () => {
  // For that client, the library's clock stays two hours ahead.
  onTestFinished(() => replaceRuntime());
  const clock = await newClock();
  const line = newLine();
  const name = uniqueName("outlives");
  const ready = line.getBlockingQueue<string>(name);
  const taking = ready.take();
  await clock.advance("2 hours");
  await clock.close();
  await line.getDelayedQueue<string>(name).offer("real", 50);
  expect(await taking).toBe("real");
});

test("several servers have one time", async () => {
  const clock = await newClock({ now: EIGHT });
  const line = newLine({ redis: [redisUrl(), `${redisUrl()}/1`] });
  const name = uniqueName("servers");
  const seen = new Map<number, number>();
  const options = { partitions: 4 };
  line
    .getBlockingQueue<number>(name, options)
    .subscribe((i) => void seen.set(i, clock.now.getTime() - Date.parse(EIGHT)));
  const queue = line.getDelayedQueue<number>(name, options);
  for (let i = 0; i < 8; i++) await queue.offer(i, MINUTE, { key: `key ${i}` });
  await clock.advance("61s");
  expect([...seen.values()]).toEqual(Array.from({ length: 8 }, () => MINUTE));
});
