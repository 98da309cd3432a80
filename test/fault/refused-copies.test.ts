import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { Delayline, OfferError, OfferManyError, type RedisError } from "../../src/index.ts";
import { newAclUser } from "../helpers/acl-user.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, reconnectOnError, redisUrl, uniqueName } from "../helpers/redis.ts";
import { startProxy, type TcpProxy } from "../helpers/tcp-proxy.ts";

/**
 * Redis carries a command out, and the reply is lost. ioredis sends it again, and Redis refuses the second copy before
 * its script runs. The error must not say that nothing was done.
 */

const EVERYTHING = ["+@all", "~*", "&*"];

/** A user behind a proxy who loses a reply, and then the right to run scripts. */
async function userBehindProxy() {
  const admin = newRedis();
  const { user, url } = await newAclUser(admin, EVERYTHING);
  const proxy = await startProxy(redisUrl());
  url.hostname = "127.0.0.1";
  url.port = String(proxy.port);
  const refuse = () => admin.call("ACL", "SETUSER", user, "-@write", "-@scripting");
  return { url: url.href, loseAndRefuse: (bytes: string) => loseAnd(proxy, bytes, refuse) };
}

/** Loses the reply to what holds these bytes, and reconnects nobody before `refuse` is done. */
async function loseAnd(proxy: TcpProxy, bytes: string, refuse: () => Promise<unknown>) {
  await proxy.loseReplyTo(bytes);
  proxy.refuse();
  await refuse();
  await proxy.accept();
}

const LONG = 3_600_000;

test.each([
  ["an ordinary offer", "delayed", {}, {}],
  ["an offer with a key", "delayed", {}, { key: "order:1" }],
  ["an offer to a partition", "delayed", { partitions: 2 }, { key: "order:1" }],
  ["an offer to a reliable queue", "reliable", {}, {}],
] as const)(
  "%s is stored, and its second copy refused: unknown",
  async (_, kind, queue, options) => {
    const { url, loseAndRefuse } = await userBehindProxy();
    const name = uniqueName();
    const open = (line: Delayline) =>
      kind === "reliable"
        ? line.getReliableQueue<string>(name, queue)
        : line.getDelayedQueue<string>(name, queue);
    const own = newLineThatMayFail({ redis: url, transfer: false, codec: "string" });
    await open(own).offer("warm", 0, { key: "warm" });

    const losing = loseAndRefuse("payload-42");
    const error = await open(own)
      .offer("payload-42", LONG, options)
      .catch((reason: unknown) => reason);
    await losing;
    expect(error).toBeInstanceOf(OfferError);
    expect(error).toMatchObject({ reply: "NOPERM", effect: "unknown" });
    const there = open(newLine({ transfer: false, codec: "string" }));
    expect(await there.size()).toBe(2);

    // The next one is sent once.
    const next = open(own).offer("payload-43", LONG, options);
    await expect(next).rejects.toMatchObject({ reply: "NOPERM", effect: "none" });
    expect(await there.size()).toBe(2);
  },
);

test("a batch is stored, and its second copy refused: unknown for each", async () => {
  const { url, loseAndRefuse } = await userBehindProxy();
  const name = uniqueName();
  const queue = newLineThatMayFail({ redis: url, transfer: false }).getDelayedQueue<string>(name);
  await queue.offer("warm", 0);
  const losing = loseAndRefuse("batch-7");
  const messages = Array.from({ length: 20 }, (__, i) => ({ payload: `batch-${i}`, delay: LONG }));
  const error = await queue.offerMany(messages).catch((reason: unknown) => reason);
  await losing;
  expect(error).toBeInstanceOf(OfferManyError);
  const { results } = error as OfferManyError;
  expect(results.map((one) => (one as OfferError).effect)).toEqual(messages.map(() => "unknown"));
  expect(await newLine({ transfer: false }).getDelayedQueue(name).size()).toBe(21);
});

test("an offer of a lent client is stored, and its second copy refused: unknown", async () => {
  const { url, loseAndRefuse } = await userBehindProxy();
  const name = uniqueName();
  const lent = new Redis(url, { reconnectOnError, maxRetriesPerRequest: null });
  lent.on("error", () => {});
  onTestFinished(() => lent.disconnect());
  const line = newLineThatMayFail({ redis: lent, transfer: false, codec: "string" });
  const queue = line.getDelayedQueue<string>(name);
  await queue.offer("warm", 0);
  const losing = loseAndRefuse("payload-42");
  await expect(queue.offer("payload-42", LONG)).rejects.toMatchObject({ effect: "unknown" });
  await losing;
});

test("a call other than an offer: unknown", async () => {
  const { url, loseAndRefuse } = await userBehindProxy();
  const line = newLineThatMayFail({ redis: url, transfer: false, codec: "string" });
  const queue = line.getBlockingQueue<string>(uniqueName());
  await queue.put("warm");
  const losing = loseAndRefuse("payload-42");
  const error = await queue.put("payload-42").catch((reason: unknown) => reason as RedisError);
  await losing;
  expect(error).toMatchObject({ reply: "NOPERM", effect: "unknown" });
  await expect(queue.put("payload-43")).rejects.toMatchObject({ effect: "none" });
});

test("the second copy is refused until the time is over, by a server that became a replica: unknown", async () => {
  const server = await startOwnServer();
  const admin = newRedis(server.url);
  const proxy = await startProxy(server.url);
  const redis = { port: proxy.port };
  const options = { redis, transfer: false, codec: "string", callTimeout: 1200 } as const;
  const queue = newLineThatMayFail(options).getDelayedQueue<string>(uniqueName());
  await queue.offer("warm", 0);
  const losing = loseAnd(proxy, "payload-42", () => admin.replicaof("127.0.0.1", "1"));
  const error = await queue.offer("payload-42", LONG).catch((reason: unknown) => reason);
  await losing;
  expect(error).toMatchObject({ effect: "unknown" });
  await admin.replicaof("NO", "ONE");
  expect(await queue.size()).toBe(2);
});
