import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { OfferError, RedisError, RejectError, type OfferOptions } from "../../src/index.ts";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";
import { Roles } from "../helpers/roles.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";
import { missing, repeated } from "../helpers/ledger.ts";
import { upTo } from "../helpers/numbers.ts";

/*
 * A user whose access rules deny one command or key that the library needs. Redis then refuses in the middle of a
 * script and rolls nothing back. No message may be lost or duplicated by that.
 */

/** One rule each. The test finds out by trying whether it matters, and to which call. */
const RULES = `
  time zadd zscore rpush zrange zrank publish ltrim zrem
  evalsha get zrangebyscore zremrangebyrank set unlink subscribe
  blpop lpop exists del expire lpush client|id client|unblock
  lrange llen zcard rename
  hello client|setname info ping
`
  .trim()
  .split(/\s+/)
  .map((command) => `-${command}`);

/** These stop offering, moving or taking, so the client has to report them. */
const SERIOUS = new Set(
  `
  time zadd rpush zrange zrank publish
  evalsha get zrangebyscore zremrangebyrank set subscribe
  blpop zscore zrem expire lpush client|id
`
    .trim()
    .split(/\s+/)
    .map((command) => `-${command}`)
    .concat("resetchannels"),
);

test("a permission is missing for a while, and no message is lost or duplicated", async () => {
  const server = await startOwnServer();
  const admin = newRedis(server.url);
  const outcomes = await Promise.all(
    [...RULES, "resetchannels"].map((rule, i) => liveWithout(rule, `user${i}`, server.port)),
  );

  expect(outcomes.filter(({ problems }) => problems.length > 0)).toEqual([]);
  const silent = outcomes.filter(({ rule, errors }) => SERIOUS.has(rule) && errors.length === 0);
  expect(silent.map(({ rule }) => rule)).toEqual([]);
  // An error says that a permission is missing.
  const unclear = outcomes.flatMap(({ rule, errors }) =>
    errors
      .filter((error) => !/permission|can't run this command|unknown layout/.test(error))
      .map((e) => [rule, e]),
  );
  expect(unclear).toEqual([]);

  /** Works under a rule, then without it. */
  async function liveWithout(rule: string, username: string, port: number) {
    const password = "secret";
    await admin.acl("SETUSER", username, "on", `>${password}`, "~*", "&*", "+@all", rule);
    const name = uniqueName();
    const timeouts = `redisson_delay_queue_timeout:{${name}}`;
    const line = newLineThatMayFail({ redis: { port, username, password }, codec: "json" });
    const errors: string[] = [];
    line.on("error", ({ message }) => errors.push(message));
    const accepted: string[] = [];
    const refused: string[] = [];
    const received: string[] = [];

    // Other clients fill the queue, with a poisonous message among the good ones.
    const others = newLine({ redis: server.url, codec: "json", transfer: false });
    await admin.zadd(timeouts, 1, "poison");
    for (const i of upTo(20)) {
      await others.getDelayedQueue<string>(name).offer(`theirs ${i}`, 50 * i);
      accepted.push(`theirs ${i}`);
    }

    const delayed = line.getDelayedQueue<string>(name);
    const ready = line.getBlockingQueue<string>(name);
    const over = new AbortController();
    const taking = (async () => {
      while (!over.signal.aborted) {
        try {
          // Short, so that messages arrive for nobody and are given back.
          const signal = AbortSignal.timeout(Math.ceil(5 + Math.random() * 30));
          received.push(await ready.take({ signal }));
        } catch (error) {
          if (error instanceof RedisError) errors.push(error.message);
          else expect(error).toHaveProperty("name", "TimeoutError");
          await sleep(Math.random() * 60);
        }
      }
    })();
    const offering = (async () => {
      for (const i of upTo(20)) {
        try {
          await delayed.offer(`ours ${i}`, 30 * i);
          accepted.push(`ours ${i}`);
        } catch (error) {
          if (!(error instanceof OfferError)) throw error;
          errors.push(error.message);
          if (error.effect === "none") refused.push(`ours ${i}`);
          await sleep(50);
        }
      }
    })();
    await sleep(2_000);
    // A serious problem is reported, even if a busy machine takes longer.
    if (SERIOUS.has(rule)) await eventually(() => errors.length > 0).catch(() => {});
    // Refused clients leave no connections behind.
    const list = String(await admin.client("LIST"));
    const connections = list.split("\n").filter((one) => one.includes(` user=${username} `)).length;

    await admin.acl("SETUSER", username, "+@all", "allchannels");
    const problems: string[] = [];
    const note = (problem: string) => void problems.push(problem);
    await offering.catch((error: unknown) => note(String(error)));
    await eventually(() => missing(accepted, received).length === 0, { within: 30_000 }).catch(() =>
      note(`lost ${missing(accepted, received).join()}`),
    );
    over.abort();
    await taking;
    await line.close();
    if (repeated(received).length > 0) note(`twice ${repeated(received).join()}`);
    for (const one of refused) if (received.includes(one)) note(`"${one}" was stored`);
    if (connections > 8) note(`${connections} connections`);
    const quarantine = await admin.lrange(`delayline_unreadable:{${name}}`, 0, -1);
    if (quarantine.length !== 1) note(`the poison is in the quarantine ${quarantine.length} times`);
    return { rule, problems, errors: [...new Set(errors)] };
  }
}, 120_000);

test("with a wrong password, awaited calls reject and events say why", async () => {
  const server = await startOwnServer({ args: ["--requirepass", "right"] });
  const { port } = server;
  const line = newLineThatMayFail({ redis: { port, password: "wrong", maxRetriesPerRequest: 1 } });
  const name = uniqueName();
  const delayed = line.getDelayedQueue(name);
  await expect(delayed.offer("message", 0)).rejects.toThrow("WRONGPASS");
  await eventually(() => line.errors.length > 0);
  expect(line.errors[0]).toMatchObject({ code: "REDIS", reply: "WRONGPASS" });

  // The password is corrected, and the client recovers by itself.
  const admin = newRedis(`redis://:right@127.0.0.1:${port}`);
  await admin.config("SET", "requirepass", "wrong");
  await eventually(() => delayed.offer("message", 0).then(() => true));
  expect(await line.getBlockingQueue(name).take()).toBe("message");
});

/** The commands that the scripts about business keys call. */
const KEYED_RULES = `
  time zadd zscore zrangebyscore zrange zcount zrem
  hget hmget hset hdel rpush ltrim publish
`
  .trim()
  .split(/\s+/)
  .map((command) => `-${command}`);

test.for(["none", "redisson"] as const)(
  "a business key names one message at all times while a permission is missing (interop: %s)",
  async (interop) => {
    const server = await startOwnServer();
    const admin = newRedis(server.url);
    const outcomes = await Promise.all(
      [...KEYED_RULES, "resetchannels"].map((rule, i) => changeWithout(rule, `user${i}`)),
    );
    expect(outcomes.filter(({ problems }) => problems.length > 0)).toEqual([]);

    async function changeWithout(rule: string, username: string) {
      const password = "secret";
      await admin.acl("SETUSER", username, "on", `>${password}`, "~*", "&*", "+@all", rule);
      const options = { transfer: false, codec: "string", interop } as const;
      const redis = { port: server.port, username, password };
      const name = uniqueName();
      const theirs = newLine({ redis: server.url, ...options }).getDelayedQueue<string>(name);
      const ours = newLine({ redis, ...options }).getDelayedQueue<string>(name);
      const problems: string[] = [];

      /**
       * Does something to a message with a key. Afterwards either the old or the new state is there, nothing between.
       */
      const change = async (
        key: string,
        doing: () => Promise<unknown>,
        expected: { done: string[]; refused: string[] },
      ) => {
        await theirs.clear();
        await theirs.offer("last", 90_000);
        await theirs.offer("old", 60_000, { key });
        const outcome = await doing().then(
          () => "done" as const,
          () => "refused" as const,
        );
        const there = (await theirs.insertionOrder.readAll()).toSorted();
        const wanted = [...expected[outcome], "last"].toSorted();
        if (there.join() !== wanted.join()) problems.push(`${key} ${outcome}: ${there.join()}`);
        // The key points to the message, and the message can be removed by it.
        const [found] = expected[outcome];
        if ((await theirs.get(key))?.payload !== found) problems.push(`${key}: the key is lost`);
        if ((await theirs.cancel(key)) !== (found !== undefined))
          problems.push(`${key}: not cancelled`);
        if ((await theirs.size()) !== 1) problems.push(`${key}: ${await theirs.size()} are left`);
        // Redisson's insertion order has no surplus element.
        const elements = await admin.llen(`redisson_delay_queue:{${name}}`);
        if (interop === "redisson" && elements !== 1) problems.push(`${key}: ${elements} elements`);
      };

      const [replace, keep] = [{ onDuplicate: "replace" }, { onDuplicate: "update" }] as const;
      const replaced = { done: ["new"], refused: ["old"] };
      await change(
        "replace",
        () => ours.offer("new", 500_000, { key: "replace", ...replace }),
        replaced,
      );
      await change(
        "sooner",
        () => ours.offer("new", 5_000, { key: "sooner", ...replace }),
        replaced,
      );
      await change("keep", () => ours.offer("new", 500_000, { key: "keep", ...keep }), replaced);
      const stays = { done: ["old"], refused: ["old"] };
      await change("reject", () => ours.offer("new", 500_000, { key: "reject" }), stays);
      await change("reschedule", () => ours.reschedule("reschedule", 5_000), stays);
      await change("cancel", () => ours.cancel("cancel"), { done: [], refused: ["old"] });
      return { rule, problems };
    }
  },
);

/** Two permissions each: what the first one stops, the second one might be needed to take back. */
const PAIRS = ["rpush zrem", "zadd ltrim", "hset zrem", "hset ltrim", "zadd hdel", "publish zrem"];

test.for(["none", "redisson"] as const)(
  "a rejected offer says whether the message is stored, even if it cannot be taken back (interop: %s)",
  async (interop) => {
    const server = await startOwnServer();
    const admin = newRedis(server.url);
    const outcomes = await Promise.all(PAIRS.map((pair, i) => offerWithout(pair, `user${i}`)));
    expect(outcomes).toEqual(PAIRS.map((pair) => ({ pair, problems: [] })));

    async function offerWithout(pair: string, username: string) {
      const password = "secret";
      const denied = pair.split(" ").map((command) => `-${command}`);
      await admin.acl("SETUSER", username, "on", `>${password}`, "~*", "&*", "+@all", ...denied);
      const options = { transfer: false, codec: "string", interop } as const;
      const redis = { port: server.port, username, password };
      const theirLine = newLine({ redis: server.url, ...options });
      const ourLine = newLine({ redis, ...options });
      const problems: string[] = [];

      const offers: Readonly<Record<string, OfferOptions>> = {
        plain: {},
        added: { key: "another" },
        reject: { key: "key" },
        replace: { key: "key", onDuplicate: "replace" },
        keep: { key: "key", onDuplicate: "update" },
      };
      for (const [how, offering] of Object.entries(offers)) {
        const name = uniqueName();
        const theirs = theirLine.getDelayedQueue<string>(name);
        await theirs.offer("old", 60_000, { key: "key" });
        // A new head, so that it is published.
        const done = await ourLine
          .getDelayedQueue<string>(name)
          .offer("new", 5_000, offering)
          .then(
            ({ outcome }) => outcome,
            (error: unknown) => {
              if (!(error instanceof OfferError)) throw error;
              return error.effect;
            },
          );
        const there = (await theirs.insertionOrder.readAll()).toSorted().join();
        const isStored = there.includes("new");
        const note = (problem: string) => problems.push(`${how}, ${done}: ${problem}: ${there}`);
        if (done === "none" && isStored) note("it is stored");
        if (["added", "replaced", "updated"].includes(done) && !isStored) note("it is not stored");
        // Nothing but a refused wake-up comes after the message is stored.
        if (done === "unknown" && pair !== "publish zrem") note("it could be known");
        // The key names one message at all times, and the insertion order has every message once.
        const replaces = done === "replaced" || done === "updated";
        if ((await theirs.get("key"))?.payload !== (replaces ? "new" : "old")) note("the key");
        if (there !== (replaces ? "new" : isStored ? "new,old" : "old")) note("the order");
      }
      return { pair, problems };
    }
  },
);

test("without XINFO no rejected message becomes a dead letter, and with it each becomes one", async () => {
  const server = await startOwnServer();
  const admin = newRedis(server.url);
  const [username, password] = ["worker", "secret"];
  await admin.acl("SETUSER", username, "on", `>${password}`, "~*", "&*", "+@all", "-xinfo");
  const name = uniqueName();
  const others = newLine({ redis: server.url, codec: "string" });
  const queue = others.getReliableQueue<string>(name);
  const redis = { port: server.port, username, password };
  const line = newLineThatMayFail({ redis, codec: "string" });
  const handled: string[] = [];
  const reject = (payload: string) => {
    handled.push(payload);
    throw new RejectError("no");
  };
  line.getReliableQueue<string>(name).subscribe(reject, { concurrency: 10 });
  for (const i of upTo(10)) await queue.offer(`message ${i}`, 0);
  await eventually(() => handled.length === 10);
  // Each settlement is sent again and again.
  const refused = async () => {
    const stats = /cmdstat_evalsha:.*/.exec(await admin.info("commandstats"))?.[0] ?? "";
    return Number(/failed_calls=(\d+)/.exec(stats)?.[1]);
  };
  const before = await refused();
  await eventually(async () => (await refused()) >= before + 20, { within: 30_000 });
  const { inFlight, dead } = await queue.stats();
  expect({ inFlight, dead }).toEqual({ inFlight: 10, dead: 0 });
  expect(line.errors.some(({ message }) => /permission|can't run this command/.test(message))).toBe(
    true,
  );

  await admin.acl("SETUSER", username, "+xinfo");
  await eventually(async () => (await queue.stats()).inFlight === 0, { within: 30_000 });
  const letters: string[] = [];
  for await (const { payload } of queue.deadLetters) letters.push(String(payload));
  expect(letters.toSorted()).toEqual(handled.toSorted());
});

test("a message that cannot be given back goes to the next taker", async () => {
  const server = await startOwnServer();
  const admin = newRedis(server.url);
  const password = "secret";
  await admin.acl("SETUSER", "taker", "on", `>${password}`, "~*", "&*", "+@all", "-lpush");
  const proxy = await startProxy(server.url);
  const roles = new Roles(proxy);
  const redis = { port: proxy.port, username: "taker", password };
  const line = newLineThatMayFail({ redis, transfer: false, codec: "string" });
  const name = uniqueName();
  const queue = line.getBlockingQueue<string>(name);

  // The taker leaves, and a message arrives before Redis hears of that: it arrived for nobody.
  const controller = new AbortController();
  const take = queue.take({ signal: controller.signal });
  await eventually(async () =>
    /:blocking:\S+ .* flags=\S*b/.test(String(await admin.client("LIST"))),
  );
  await eventually(() => roles.all("background").length === 1);
  roles.only("background").hold();
  controller.abort();
  await expect(take).rejects.toThrow("aborted");
  await admin.rpush(name, "message");
  roles.only("background").letGo();

  await eventually(() => line.errors.length > 0);
  expect(line.errors[0]?.message).toContain("cannot give back yet");
  // A taker that waits now gets it, instead of waiting behind it.
  expect(await queue.take({ signal: AbortSignal.timeout(30_000) })).toBe("message");
});
