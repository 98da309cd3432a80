import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { ClosedError, type BlockingQueue, type Delayline } from "../../src/index.ts";
import { giveBack } from "../../src/lua/ready/ready.ts";
import { newLine, TestLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { watchCommands } from "../helpers/monitor.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { Roles } from "../helpers/roles.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";
import { expectEachOnce } from "../helpers/ledger.ts";
import { upTo } from "../helpers/numbers.ts";

/*
 * Waits that end just as a message arrives. The message is then either taken or goes back to the head of the queue. It
 * is never lost or duplicated, and no taker gets stuck.
 */

const ABORTS = 1000;

/** A handle on the queue, whose messages are whole numbers. It has no delayed side, which is faster. */
function numbersIn(line: Delayline, name: string): BlockingQueue<number> {
  return line.getBlockingQueue<number>(name, { codec: "json", transfer: false });
}

/** Makes numbers ready, one by one and at random intervals, until it is stopped. */
function startProducer(name: string, longestPause = 3) {
  const redis = newRedis();
  let sent = 0;
  const stopping = new AbortController();
  const producing = (async () => {
    while (!stopping.signal.aborted) {
      await redis.rpush(name, String(sent++));
      await sleep(Math.random() * longestPause);
    }
  })();
  return async (): Promise<number[]> => {
    stopping.abort();
    await producing;
    return upTo(sent);
  };
}

/** Half of the time, leaves a moment in which nobody waits, so that a message may arrive for nobody. */
async function maybePause(): Promise<void> {
  if (Math.random() < 0.5) await sleep(Math.random() * 2);
}

/** Takes, and aborts the takes at random moments. Returns what was taken all the same. */
async function takeAndAbort(queue: BlockingQueue<number>, aborts: number): Promise<number[]> {
  const received: number[] = [];
  for (let aborted = 0; aborted < aborts;) {
    const controller = new AbortController();
    const reason = new Error("changed my mind");
    const timeout = setTimeout(() => controller.abort(reason), Math.random() * 4);
    try {
      received.push(await queue.take({ signal: controller.signal }));
    } catch (error) {
      expect(error).toBe(reason);
      aborted++;
      await maybePause();
    } finally {
      clearTimeout(timeout);
    }
  }
  return received;
}

/** Takes the remaining messages, and waits for them: a stuck taker would fail here. */
async function takeTheRest(queue: BlockingQueue<number>, sent: number[], received: number[]) {
  const left = sent.length - received.length;
  const rest: number[] = [];
  for (let i = 0; i < left; i++)
    rest.push(await queue.take({ signal: AbortSignal.timeout(30_000) }));
  return rest;
}

test(`${ABORTS} takes of one taker are aborted at random moments, and no message is lost or out of order`, async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = numbersIn(line, name);
  const stop = startProducer(name);

  const received = await takeAndAbort(queue, ABORTS);

  const sent = await stop();
  received.push(...(await takeTheRest(queue, sent, received)));
  // Not only once each: whatever went back went to the head, so the order is unchanged.
  expect(received).toEqual(sent);
  expect(line.errors).toEqual([]);
});

test(`${ABORTS} takes of 4 takers in one client are aborted at random moments, and no message is lost`, async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = numbersIn(line, name);
  const stop = startProducer(name);

  const takers = upTo(4).map(() => takeAndAbort(queue, ABORTS / 4));
  const received = (await Promise.all(takers)).flat();

  const sent = await stop();
  received.push(...(await takeTheRest(queue, sent, received)));
  expectEachOnce(sent, received);
  expect(line.errors).toEqual([]);
});

test(`${ABORTS} takes of 4 clients are aborted at random moments, and no message is lost`, async () => {
  const name = uniqueName();
  const lines = upTo(4).map(() => newLine());
  const stop = startProducer(name);

  const takers = lines.map((line) => takeAndAbort(numbersIn(line, name), ABORTS / 4));
  const received = (await Promise.all(takers)).flat();

  const sent = await stop();
  for (const line of lines.slice(1)) await line.close();
  received.push(...(await takeTheRest(numbersIn(lines[0] as Delayline, name), sent, received)));
  expectEachOnce(sent, received);
  expect(lines.flatMap(({ errors }) => errors)).toEqual([]);
});

test(`${ABORTS} polls expire at random moments, and no message is lost`, async () => {
  const name = uniqueName();
  const queue = numbersIn(newLine(), name);
  // Messages are rare enough that most polls find none.
  const stop = startProducer(name, 12);

  const received: number[] = [];
  for (let expired = 0; expired < ABORTS;) {
    const message = await queue.poll(0.1 + Math.random() * 4);
    if (message !== undefined) received.push(message);
    else {
      expired++;
      await maybePause();
    }
  }

  const sent = await stop();
  received.push(...(await takeTheRest(queue, sent, received)));
  expect(received).toEqual(sent);
});

test("300 aborted takes leave no receipt behind", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const watched = await watchCommands(name);
  const line = newLine();
  const queue = numbersIn(line, name);
  const stop = startProducer(name);
  const received = await takeAndAbort(queue, 300);
  // Some messages arrived for nobody.
  while (!(await watched()).some(([, sha]) => sha === giveBack.sha)) {
    received.push(...(await takeAndAbort(queue, 10)));
  }
  const sent = await stop();
  received.push(...(await takeTheRest(queue, sent, received)));
  await line.close();
  expect(await redis.keys(`delayline_receipt*${name}*`)).toEqual([]);
});

test("takes with room for many messages are aborted at random moments, and no message is lost", async () => {
  const name = uniqueName();
  const queue = numbersIn(newLine(), name);
  const stop = startProducer(name);

  const received: number[] = [];
  for (let aborted = 0; aborted < ABORTS / 2;) {
    try {
      const signal = AbortSignal.timeout(Math.ceil(Math.random() * 6));
      received.push(...(await queue.takeMany({ limit: 3, signal })));
    } catch (error) {
      expect(error).toHaveProperty("name", "TimeoutError");
      aborted++;
      await maybePause();
    }
  }

  const sent = await stop();
  received.push(...(await takeTheRest(queue, sent, received)));
  expect(received).toEqual(sent);
});

test("a blocking call ends at once even while the reply to ending another one is outstanding", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const proxy = await startProxy(redisUrl());
  const roles = new Roles(proxy);
  const queue = numbersIn(newLine({ redis: proxy.url }), name);
  const isBlocked = async () => {
    const list = String(await redis.client("LIST")).split("\n");
    return list.some((one) => one.includes(`:blocking:${name} `) && / flags=\S*b/.test(one));
  };
  const takeAndLeave = async () => {
    const controller = new AbortController();
    const take = queue.take({ signal: controller.signal });
    await eventually(isBlocked);
    controller.abort();
    await expect(take).rejects.toThrow("aborted");
  };

  await takeAndLeave();
  await eventually(async () => !(await isBlocked()));
  roles.only("background").delay.reply = 300;
  await takeAndLeave();
  await eventually(async () => !(await isBlocked()));
  await takeAndLeave();
  // Not at the end of the blocking call's own time, which is 5 s.
  await eventually(async () => !(await isBlocked()), { within: 4_000 });
});

test("a poll expires while a message is on its way to it, and the next poll does not overtake that message", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const proxy = await startProxy(redisUrl());
  const roles = new Roles(proxy);
  const queue = numbersIn(newLine({ redis: proxy.url }), name);
  await redis.rpush(name, -1);
  expect(await queue.take()).toBe(-1);
  roles.only("blocking").delay.reply = 2_000;

  const polling = queue.poll(1_500);
  await eventually(async () => {
    const list = String(await redis.client("LIST")).split("\n");
    return list.some((one) => one.includes(`:blocking:${name} `) && / flags=\S*b/.test(one));
  });
  await redis.rpush(name, 0, 1, 2);
  const first = await polling;
  // It may return nothing, but not a later message.
  const received = first === undefined ? [] : [first];
  while (received.length < 3) received.push(await queue.take());
  expect(received).toEqual([0, 1, 2]);
});

test("150 clients are closed while messages arrive, and no message is lost", async () => {
  const name = uniqueName();
  const stop = startProducer(name);
  const received: number[] = [];

  /** One short life: connects, waits in three takes at once, and closes while they wait. */
  const liveShortly = async (untilTaken: boolean) => {
    const line = new TestLine();
    const queue = numbersIn(line, name);
    const takes = upTo(3).map(() =>
      queue.take().then(
        (message) => received.push(message),
        (error: unknown) => expect(error).toBeInstanceOf(ClosedError),
      ),
    );
    // At some moment while it connects, or at some moment while it takes.
    if (untilTaken) await Promise.race(takes);
    await sleep(Math.random() * 8);
    await line.close();
    await Promise.all(takes);
    expect(line.errors).toEqual([]);
  };
  const inARow = async () => {
    for (let i = 0; i < 50; i++) await liveShortly(i % 2 === 0);
  };
  await Promise.all([inARow(), inARow(), inARow()]);

  const sent = await stop();
  const redis = newRedis();
  const left = (await redis.lrange(name, 0, -1)).map(Number);
  expectEachOnce(sent, [...received, ...left]);
  expect(received.length).toBeGreaterThanOrEqual(75);
});
