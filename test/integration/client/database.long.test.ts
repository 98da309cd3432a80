import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { describe, expect, onTestFinished, test } from "vitest";
import type { DelaylineOptions } from "../../../src/index.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer, type OwnServer } from "../../helpers/own-server.ts";
import { newRedis, reconnectOnError } from "../../helpers/redis.ts";
import { spawnSentinel } from "../../helpers/sentinel.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

/*
 * ioredis emits the refusal of a SELECT, becomes ready all the same, and works in database 0. A connection of ours that
 * was refused carries nothing.
 */

const REFUSED = "database 99 cannot be selected: ERR DB index is out of range";

/** Lends a client of either ioredis. Its own error events are its lender's affair. */
function lend(client: Redis | Redis5): Redis {
  client.on("error", () => {});
  onTestFinished(() => client.disconnect());
  return client as Redis;
}

/** What a client may be given for database 99. */
const FORMS: Readonly<
  Record<string, (server: OwnServer) => NonNullable<DelaylineOptions["redis"]>>
> = {
  "a URL": ({ url }) => `${url}/99`,
  "a URL with a query": ({ url }) => `${url}?db=99`,
  options: ({ port }) => ({ port, db: 99 }),
  "options without a ready check": ({ port }) => ({ port, db: 99, enableReadyCheck: false }),
  "a lent client": ({ url }) => lend(new Redis(`${url}/99`, { reconnectOnError })),
  "a lent client of ioredis 5": ({ url }) => lend(new Redis5(`${url}/99`, { reconnectOnError })),
};

describe.each(Object.entries(FORMS))("a database that is not there, in %s", (_, form) => {
  test("is refused with its cause: nothing goes to database 0, and nothing is taken there", async () => {
    const server = await startOwnServer();
    const other = newRedis(server.url);
    await other.rpush("orders", "not ours");
    const line = newLineThatMayFail({ redis: form(server), callTimeout: 3000 });
    const delayed = line.getDelayedQueue("orders");
    const ready = line.getBlockingQueue("orders");
    const refused = { effect: "none", message: expect.stringContaining(REFUSED) as string };

    const taken = ready.poll(700);
    await expect(delayed.offer("a", 0)).rejects.toMatchObject({
      ...refused,
      effect: "none",
    });
    await expect(delayed.size()).rejects.toMatchObject(refused);
    await expect(ready.put("a")).rejects.toMatchObject(refused);
    await expect(taken).rejects.toMatchObject(refused);
    expect(line.errors.map(({ message }) => message)).toEqual([
      expect.stringContaining(`cannot reach Redis: ${REFUSED}; correct the number`),
    ]);
    expect(line.recoveries).toEqual([]);

    // Nothing has changed in database 0, and none of the connections is ready there.
    expect(await other.keys("*")).toEqual(["orders"]);
    expect(await other.llen("orders")).toBe(1);
  });
});

test("a lent client whose database exists is asked once for each connection", async () => {
  const server = await startOwnServer();
  const lent = newRedis(`${server.url}/3`);
  const delayed = newLine({ redis: lent, transfer: false }).getDelayedQueue("orders");
  const selects = async () => {
    const stats = await lent.info("commandstats");
    return Number(/cmdstat_select:calls=(\d+)/.exec(stats)?.[1]);
  };
  await lent.ping();
  const before = await selects();
  for (let i = 0; i < 5; i++) await delayed.offer(String(i), 60_000);
  expect(await selects()).toBe(before + 1);
  expect(await newRedis(`${server.url}/3`).dbsize()).toBeGreaterThan(0);
});

test("a lent client that its lender has sent to another database is refused", async () => {
  const server = await startOwnServer();
  const lent = newRedis(server.url);
  const delayed = newLine({ redis: lent, transfer: false }).getDelayedQueue("orders");
  await delayed.offer("a", 60_000);
  await lent.select(4);
  await expect(delayed.offer("b", 60_000)).rejects.toThrow(
    "the lent client has selected database 4, but its option db says 0",
  );
  expect(await lent.dbsize()).toBe(0);
  await lent.select(0);
  await delayed.offer("b", 60_000);
});

test.each(["own", "lent"])(
  "after a reconnect to a server with fewer databases, an %s client carries nothing until it has its database again",
  async (owner) => {
    const large = await startOwnServer();
    const small = await startOwnServer({ args: ["--databases", "2"] });
    const proxy = await startProxy(large.url);
    const url = `${proxy.url}/9`;
    const lent = owner === "lent" ? lend(new Redis(url, { reconnectOnError })) : undefined;
    const line = newLineThatMayFail({ redis: lent ?? url });
    const delayed = line.getDelayedQueue("orders");
    const received: unknown[] = [];
    line.getBlockingQueue("orders").subscribe((message) => received.push(message));
    await delayed.offer("a", 0);
    await eventually(() => received.length === 1);

    const before = lent?.stream;
    proxy.moveTo(small.url);
    proxy.cut();
    await eventually(
      () => line.errors.length > 0 && !(lent !== undefined && lent.stream === before),
    );
    await expect(delayed.offer("b", 0)).rejects.toMatchObject({
      effect: "none",
      message: expect.stringContaining("database 9 cannot be selected") as string,
    });
    expect(line.errors.map(({ message }) => message)).toEqual([
      expect.stringContaining("cannot reach Redis: database 9 cannot be selected"),
    ]);
    expect(line.recoveries).toEqual([]);
    expect(await newRedis(small.url).dbsize()).toBe(0);

    proxy.moveTo(large.url);
    proxy.cut();
    await eventually(() => line.recoveries.length === 1, { within: 10_000 });
    await delayed.offer("c", 0);
    await eventually(() => received.length === 2);
    expect(received).toEqual(["a", "c"]);
    expect(await newRedis(small.url).dbsize()).toBe(0);
  },
);

test("what a lent client sends again to database 0 is told", async () => {
  const large = await startOwnServer();
  const small = await startOwnServer({ args: ["--databases", "2"] });
  const proxy = await startProxy(large.url);
  const lent = lend(new Redis(`${proxy.url}/9`, { reconnectOnError }));
  const delayed = newLineThatMayFail({ redis: lent, transfer: false }).getDelayedQueue("orders");
  await delayed.offer("a", 60_000);

  large.pause();
  const offer = delayed.offer("b", 60_000);
  // The script is on its way when the connection is lost.
  await new Promise((resolve) => setImmediate(resolve));
  proxy.moveTo(small.url);
  proxy.cut();
  await expect(offer).rejects.toMatchObject({
    effect: "unknown",
    message: expect.stringContaining("sent the command again to database 0") as string,
  });
  large.resume();
});

test.each(["", "/3"])(
  "the address of a Sentinel is told as such, with database %j",
  async (path) => {
    const url = `redis://127.0.0.1:${await spawnSentinel([])}${path}`;
    const line = newLineThatMayFail({ redis: url, transfer: false });
    await expect(line.getDelayedQueue("orders").offer("a", 0)).rejects.toThrow(
      /the address is that of a Sentinel; give the Sentinels and the name of their master/,
    );
    await eventually(() => line.errors.length > 0);
    expect(line.errors).toHaveLength(1);
  },
);
