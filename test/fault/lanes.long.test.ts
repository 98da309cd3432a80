import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { queueKeys } from "../../src/queue/keys.ts";
import { bundle } from "../helpers/bundle.ts";
import { startChild } from "../helpers/child.ts";
import { newLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { expectEachOnce } from "../helpers/ledger.ts";
import { upTo } from "../helpers/numbers.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";

const mover = new URL("workers/mover.ts", import.meta.url);
const worker = new URL("../helpers/programs/reliable-worker.ts", import.meta.url);

const LANES = ["a", "b", "c", "d"];

/** Messages of all lanes; the payload begins with the lane. */
const inLanes = (count: number) =>
  upTo(count).map((i) => ({
    payload: `${LANES[i % LANES.length]} ${i}`,
    lane: LANES[i % 4] ?? "",
  }));

const laneOf = (payload: string) => payload.slice(0, 1);

test("no lane has more in any window than its rate allows, while movers are killed, the queue is paused, and the flow is changed", async () => {
  const name = uniqueName("lanes");
  // A server of its own, which says how long its scripts took.
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  await redis.config("SET", "slowlog-log-slower-than", "1000", "slowlog-max-len", "10000");
  const { stream, room, turns, lanes, resting } = queueKeys(name);
  const program = await bundle(mover);
  const start = async () => {
    const child = startChild(program, { env: { REDIS: server.url, QUEUE: name } });
    await child.next();
    return child;
  };
  const queue = newLine({
    redis: server.url,
    transfer: false,
    codec: "string",
  }).getReliableQueue<string>(name);
  const lane = { rate: { limit: 50, per: 1000, burst: 5 } };
  const flow = { lane, ahead: 1_000_000 };
  await queue.flow.set(flow);
  const sent = inLanes(800);
  const movers = await Promise.all(upTo(3).map(start));
  await queue.offerMany(sent.map((message, i) => ({ ...message, delay: i / 2 })));
  for (const round of upTo(7)) {
    const before = await redis.xlen(stream);
    // While it is paused nothing comes; and on a busy machine all may have come before the last round.
    const wanted = Math.min(sent.length, before + 40);
    if (round !== 3) await eventually(async () => (await redis.xlen(stream)) >= wanted);
    await movers[round % 3]?.kill("SIGKILL");
    movers[round % 3] = await start();
    if (round === 1) await queue.flow.set({ ...flow, rate: { limit: 120, per: 1000, burst: 5 } });
    if (round === 2) await queue.pause();
    if (round === 3) await queue.resume();
    if (round === 4) await queue.flow.set({ ...flow, lanes: { a: { ...lane, weight: 3 } } });
    if (round === 5) await queue.flow.hold("b", 500);
  }
  await eventually(async () => (await redis.xlen(stream)) >= sent.length, { within: 60_000 });

  const entries = await redis.xrange(stream, "-", "+");
  const ready = entries.map(([id, fields]) => ({
    at: Number(id.split("-")[0]),
    payload: fields[fields.indexOf("p") + 1] ?? "",
  }));
  expectEachOnce(
    ready.map(({ payload }) => payload),
    sent.map(({ payload }) => payload),
  );
  // The ids of entries are cut to milliseconds, and are made later than the script has asked the clock: by as long as the slowest
  // script took at most, on a machine that stopped Redis within it.
  const slow = (await redis.slowlog("GET", -1)) as [number, number, number, string[]][];
  const times = slow.filter(([, , , [verb = ""]]) => /^eval/i.test(verb)).map((one) => one[2]);
  const stopped = Math.max(1000, ...times) / 1000;
  let closest = 0;
  for (const one of LANES) {
    const instants = ready.filter(({ payload }) => laneOf(payload) === one).map(({ at }) => at);
    for (const [i, first] of instants.entries()) {
      for (const [k, last] of instants.slice(i).entries()) {
        const most = 5 + (last - first + 1 + stopped) * 0.05;
        expect(k + 1).toBeLessThanOrEqual(most);
        closest = Math.max(closest, (k + 1) / most);
      }
    }
  }
  // The rates were also used.
  expect(closest).toBeGreaterThan(0.9);
  expect(await redis.exists(room, turns, lanes, resting)).toBe(0);
}, 180_000);

test("no lane ever has more in hand than it may, while workers are killed, and each message is handled", async () => {
  const name = uniqueName("lanes");
  const redis = newRedis();
  const { stream } = queueKeys(name);
  const program = await bundle(worker);
  const queue = newLine({ transfer: false, codec: "string" }).getReliableQueue<string>(name);
  await queue.flow.set({ concurrency: 6, lane: { concurrency: 2 } });
  const handled = new Set<string>();
  const env = {
    REDIS: redisUrl(),
    QUEUE: name,
    OPTIONS: JSON.stringify({ leaseTimeout: 1000, maxAttempts: 100 }),
    SUBSCRIBE: JSON.stringify({ concurrency: 20 }),
  };
  const start = () => {
    const child = startChild<{ kind: string; payload?: string }>(program, { env });
    void (async () => {
      for (;;) {
        const told = await child.next().catch(() => undefined);
        if (told === undefined) return;
        if (told.kind === "done" && told.payload !== undefined) handled.add(told.payload);
      }
    })();
    return child;
  };
  const workers = upTo(3).map(start);
  const sent = inLanes(600);
  await queue.offerMany(sent.map((message) => ({ ...message, delay: 5 })));

  let looks = 0;
  const looking = (async () => {
    while (handled.size < sent.length) {
      const entries = await redis.xrange(stream, "-", "+");
      const inHand = entries.map(([, fields]) => laneOf(fields[fields.indexOf("p") + 1] ?? ""));
      expect(inHand.length).toBeLessThanOrEqual(6);
      for (const one of LANES) {
        expect(inHand.filter((lane) => lane === one).length).toBeLessThanOrEqual(2);
      }
      if (inHand.length === 6) looks++;
      await sleep(3);
    }
  })();
  const killing = (async () => {
    for (const round of upTo(6)) {
      const before = handled.size;
      await eventually(() => handled.size >= Math.min(sent.length, before + 60));
      await workers[round % 3]?.kill("SIGKILL");
      workers[round % 3] = start();
    }
  })();
  await Promise.all([looking, killing]);
  // What they may was also used.
  expect(looks).toBeGreaterThan(0);
  expect(handled.size).toBe(sent.length);
}, 180_000);
