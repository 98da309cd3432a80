import type { Redis } from "ioredis";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { DelaylineError } from "../../../src/errors.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import type { PausableSource } from "../../../src/ready/open-sources.ts";
import { Taker } from "../../../src/ready/taker.ts";
import type { TakerOptions } from "../../../src/ready/taker.ts";
import { Connections } from "../../../src/redis/connections.ts";
import { Troubles } from "../../../src/redis/troubles.ts";
import { watchCommands } from "../../helpers/monitor.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { KnownPause } from "../../unit/ready/wire.ts";

// One taker takes from many lists of one server, in rotating order.

let redis: Redis;
let errors: string[];

beforeEach(() => {
  redis = newRedis();
  errors = [];
});

function newSource(name = uniqueName("list")): PausableSource {
  const { ready, receipts } = queueKeys(name);
  return { ready, receipts, pauses: new KnownPause(false) };
}

const newSources = (count: number) => Array.from({ length: count }, () => newSource());

const report = ({ message }: DelaylineError) => void errors.push(message);

function newTaker(sources: readonly PausableSource[], options: TakerOptions = {}): Taker {
  const troubles = new Troubles({ report, onRecovered: () => {} });
  const connections = new Connections(redisUrl(), 2000, {
    onTime: () => {},
    onLost: () => {},
    beforeTaking: () => undefined,
    troubles,
  });
  const taker = new Taker(
    sources,
    { connections, report, troubles, unreachableTimeout: 2000 },
    { order: "rotating", name: "the partitions", ...options },
  );
  onTestFinished(async () => {
    await taker.close();
    connections.close();
  });
  return taker;
}

const take = async (taker: Taker, max = 1) =>
  (await taker.wait(max, { timeout: Infinity })).map(({ payload }) => payload.toString());

test("each other list is served within 9 takes, although one list is always full", async () => {
  const sources = newSources(8);
  const [full, ...others] = sources as [PausableSource, ...PausableSource[]];
  await redis.rpush(full.ready, ...Array<string>(100).fill("full"));
  for (const [i, { ready }] of others.entries()) await redis.rpush(ready, `other ${i}`);
  const taker = newTaker(sources);
  const taken: string[] = [];
  for (let i = 0; i < 9; i++) taken.push(...(await take(taker)));
  expect(taken.filter((payload) => payload !== "full").toSorted()).toEqual(
    others.map((_, i) => `other ${i}`),
  );
});

test("many waiters are served from all lists, in the order of each", async () => {
  const sources = newSources(4);
  for (const [i, { ready }] of sources.entries()) await redis.rpush(ready, `${i}a`, `${i}b`);
  const taker = newTaker(sources);
  const watched = await watchCommands(sources[0]!.ready);
  const first = await take(taker, 4);
  expect(first.toSorted()).toEqual(["0a", "1a", "2a", "3a"]);
  const rest = await Promise.all(Array.from({ length: 4 }, () => take(taker)));
  expect(rest.flat().toSorted()).toEqual(["0b", "1b", "2b", "3b"]);
  // A pop for the first waiter, and a pop for three with a blocking call for the last.
  const names = (await watched()).map(([word = ""]) => word.toLowerCase());
  expect(names.filter((word) => word === "blpop")).toHaveLength(1);
  expect(names.filter((word) => word === "evalsha")).toHaveLength(2);
});

test("takes from new sources that are set while it waits, and no longer from removed ones", async () => {
  const [left, stays, joins] = newSources(3) as [PausableSource, PausableSource, PausableSource];
  const taker = newTaker([left, stays]);
  const first = take(taker);
  await redis.rpush(stays.ready, "stays");
  expect(await first).toEqual(["stays"]);

  const second = take(taker);
  void taker.setSources([]);
  void taker.setSources([stays, joins]);
  await redis.rpush(joins.ready, "joins");
  expect(await second).toEqual(["joins"]);
  await redis.rpush(left.ready, "left");
  const third = take(taker);
  await redis.rpush(stays.ready, "stays");
  expect(await third).toEqual(["stays"]);
  expect(await redis.llen(left.ready)).toBe(1);
  expect(errors).toEqual([]);
});
