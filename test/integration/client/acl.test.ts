import type { Redis } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { Delayline } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { giveBack } from "../../../src/lua/ready/ready.ts";
import { run } from "../../../src/lua/script.ts";
import { TRIALS } from "../../../src/tools/doctor/looks/access-report.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { documentedRules, newAclUser } from "../../helpers/acl-user.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { offerAsRedisson, transferAsRedisson, type Layout } from "../../helpers/redisson.ts";

/** A Redis user with exactly the rights that docs/operations/setting-up.md lists for the queue `name`. */
async function newUser(admin: Redis, name: string): Promise<{ user: string; url: URL }> {
  return await newAclUser(admin, await documentedRules(name));
}

it("a queue needs no more access than docs/operations/setting-up.md says", async () => {
  const name = uniqueName("acl");
  const admin = newRedis();
  const { user, url } = await newUser(admin, name);
  const line = new Delayline({ redis: url.href });
  onTestFinished(() => line.close());
  const errors: Error[] = [];
  line.on("error", (error) => errors.push(error));
  const delayed = line.getDelayedQueue<number>(name);
  const ready = line.getBlockingQueue<number>(name);

  // Uses every script and command.
  await delayed.offer(1, 20);
  expect(await ready.take()).toBe(1);
  await delayed.offerMany(Array.from({ length: 3000 }, (_, i) => ({ payload: i, delay: 0 })));
  let taken = 0;
  while (taken < 3000) taken += (await ready.takeMany({ limit: 500 })).length;
  await delayed.offerMany([5, 6, 7, 8, 9].map((payload) => ({ payload, delay: 60_000 })));
  expect(await delayed.insertionOrder.readAll()).toEqual([5, 6, 7, 8, 9]);
  expect(await delayed.insertionOrder.contains(6)).toBe(true);
  expect(await delayed.insertionOrder.remove(6)).toBe(true);
  expect(await delayed.insertionOrder.poll()).toBe(5);
  expect(await delayed.nextDeadline()).toBeGreaterThan(0);
  expect(await delayed.insertionOrder.pollLastAndOfferFirstTo(name)).toBe(9);
  expect(await ready.peek()).toBe(9);
  expect(await ready.poll()).toBe(9);
  await expect(ready.take({ signal: AbortSignal.timeout(10) })).rejects.toThrow();
  expect(await ready.poll(5)).toBeUndefined();
  await delayed.offer(1, 60_000, { key: "a" });
  await delayed.offer(2, 60_000, { key: "a", onDuplicate: "replace" });
  expect((await delayed.reschedule("a", 50_000))?.id).toBe((await delayed.get("a"))?.id);
  expect((await delayed.cancelWhere({ prefix: "a" })).count).toBe(1);
  await delayed.offer(4, 0, { key: "b" });
  expect(await ready.take()).toBe(4);
  await ready.putMany([1, 2, 3]);
  expect(await ready.readAll()).toEqual([1, 2, 3]);
  expect(await ready.size()).toBe(3);
  expect(await ready.clear()).toBe(3);
  expect(await delayed.clear()).toBe(2);
  await line.close();

  const exact = new Delayline({ redis: url.href, interop: "redisson" });
  onTestFinished(() => exact.close());
  exact.on("error", (error) => errors.push(error));
  await exact
    .getDelayedQueue<number>(name)
    .offerMany([3, 2, 1].map((n) => ({ payload: n, delay: n })));
  for (const n of [1, 2, 3]) expect(await exact.getBlockingQueue(name).take()).toBe(n);

  // Compaction, give-back and quarantine, by the same user.
  const scripts = newRedis(url.href);
  const { ready: list, receipts } = queueKeys(name);
  const rows = [{ payload: "x" }];
  expect(await run(scripts, giveBack, { ready: list, receipts }, { receipt: "1" }, rows)).toBe(1);
  expect(await scripts.zrem(receipts, "1")).toBe(1);
  for (const command of ["rename", "del", "exists", "set", "lrem", "zcard", "hlen"]) {
    const allowed = await admin.call("ACL", "DRYRUN", user, command, ...wordsFor(command, name));
    expect(allowed, command).toBe("OK");
  }
  expect(await scripts.ping()).toBe("PONG");
  expect(errors).toEqual([]);
});

it("a queue in partitions needs no more access than docs/operations/setting-up.md says", async () => {
  const name = uniqueName("acl");
  const { url } = await newUser(newRedis(), name);
  const line = newLine({ redis: url.href });
  const before = line.getDelayedQueue<number>(name);
  await before.offerMany([1, 2].map((n) => ({ payload: n, delay: 60_000, key: `k${n}` })));
  await line.close();

  const others = newLine({ redis: url.href });
  const queue = others.getReliableQueue<number>(name, { partitions: 3 });
  expect(await queue.cancel("k1")).toBe(true);
  await others.setPartitions(name, 5);
  await queue.offerMany([3, 4, 5].map((n) => ({ payload: n, delay: 0 })));
  await (await queue.take()).reject();
  await (await queue.take()).nack({ delay: 60_000 });
  const changing = others.setPartitions(name, 2);
  await (await queue.take()).ack();
  await changing;
  expect(await queue.size()).toBe(2);
  expect(await queue.deadLetters.size()).toBe(1);
  await queue.pause();
  await queue.resume();
  expect(await others.partitions(name)).toHaveLength(2);
  expect(await queue.clear()).toBe(2);

  const exclusive = newLine({ redis: url.href });
  const seen: number[] = [];
  exclusive
    .getReliableQueue<number>(name, { partitions: 2, exclusive: true })
    .subscribe((n) => void seen.push(n));
  await queue.offer(6, 0);
  await eventually(() => seen.includes(6));
  const [user, admin] = [url.username, newRedis()];
  for (const command of ["list", "kill"]) {
    expect(await admin.call("ACL", "DRYRUN", user, "CLIENT", command, "ID", "1")).toBe("OK");
  }
});

it("a reliable queue needs no more access than docs/operations/setting-up.md says", async () => {
  const name = uniqueName("acl");
  const admin = newRedis();
  const { url } = await newUser(admin, name);
  const line = newLine({ redis: url.href, codec: "string" });
  const options = { leaseTimeout: 1000, retry: [10] };
  const queue = line.getReliableQueue<string>(name, options);
  line.getReliableQueue<string>(name, { group: "other" }).subscribe(() => {});

  // Retries, dead letters, and payloads pushed to the LIST.
  const { id } = await queue.offer("a", 0, { key: "k", headers: { h: "1" } });
  const first = await queue.take();
  expect(await first.extend(1000)).toBe(true);
  expect(await first.nack({ delay: 60_000 })).toBe(true);
  expect(await queue.has(id)).toBe(true);
  expect(await queue.size()).toBe(1);
  expect(await queue.nextDeadline()).toBeGreaterThan(0);
  expect((await queue.reschedule(id, 0))?.id).toBe(id);
  await (await queue.take()).reject("enough");
  expect(await queue.deadLetters.size()).toBe(1);
  expect(await queue.deadLetters.redrive(id)).toBe(1);
  await (await queue.take()).nack({ delay: 60_000 });
  expect(await queue.cancel(id)).toBe(true);
  await admin.rpush(name, "pushed");
  const pushed = await queue.take();
  expect(pushed.payload).toBe("pushed");
  await pushed.ack();

  // A consumer that looks dead to Redis.
  const { stream } = queueKeys(name);
  await queue.offer("b", 0);
  const dead = "delayline:100:00000000-0000-4000-8000-000000000000";
  await eventually(async () => {
    return (await admin.xreadgroup("GROUP", "default", dead, "STREAMS", stream, ">")) !== null;
  });
  const again = await queue.take();
  expect(again).toMatchObject({ payload: "b", attempt: 2 });
  await again.reject();
  let letters = 0;
  for await (const letter of queue.deadLetters) letters += letter.attempt === 2 ? 1 : 0;
  expect(letters).toBe(1);
  expect(await queue.deadLetters.remove(again.id)).toBe(true);
  expect(await queue.deadLetters.clear()).toBe(0);

  // And plain again.
  await queue.offer("c", 0);
  await (await queue.take()).nack({ delay: 60_000 });
  await line.close();
  const plain = newLine({ redis: url.href, codec: "string" }).getDelayedQueue<string>(name);
  expect(await plain.makePlain()).toMatchObject({ isPlain: true });
  expect(await plain.clear()).toBe(1);
});

it("a plain queue without partitions needs nothing that only others need, except for its numbers", async () => {
  const name = uniqueName("acl");
  const others = TRIALS.filter(({ neededBy }) => neededBy !== "all").map(({ rule }) => rule);
  const rules = (await documentedRules(name)).filter(
    (rule) => !others.some((other) => `+${other}`.startsWith(rule)),
  );
  const { url } = await newAclUser(newRedis(), rules);
  const line = newLine({ redis: url.href });
  const delayed = line.getDelayedQueue<number>(name);
  const ready = line.getBlockingQueue<number>(name);
  await delayed.offer(1, 10, { key: "a", deliverWithin: 60_000 });
  expect(await ready.take()).toBe(1);
  await delayed.schedules.upsert("minutely", { every: 60_000, payload: 2 });
  await delayed.offerMany(Array.from({ length: 300 }, (_, i) => ({ payload: i, delay: 0 })));
  let taken = 0;
  while (taken < 300) taken += (await ready.takeMany({ limit: 300 })).length;
  expect(await delayed.insertionOrder.readAll()).toContain(2);
  await delayed.pause();
  await delayed.resume();
  // Redis 7 and later ones say it in other words.
  await expect(delayed.stats()).rejects.toThrow(/can't run this command|permission/);
  expect(await delayed.clear()).toBeGreaterThan(0);
});

it.each(["plain", "reliable"] as const)(
  "schedules of a %s queue need no more access, also when the number of partitions changes",
  async (kind) => {
    const name = uniqueName("acl");
    const { url } = await newUser(newRedis(), name);
    const line = newLine({ redis: url.href });
    const isReliable = kind === "reliable";
    const { schedules } = isReliable
      ? line.getReliableQueue<number>(name)
      : line.getDelayedQueue<number>(name);
    const overlap = isReliable ? "skip" : "allow";
    await schedules.upsert("minutely", { every: 60_000, payload: 1, overlap });
    await schedules.declare("set", { daily: { every: 86_400_000, payload: 2 } }, { revision: 1 });
    expect(await schedules.revisionOf("set")).toBe(1);
    expect(await schedules.pause("daily")).toBe(true);
    expect(await schedules.resume("daily")).toBe(true);
    expect(await schedules.trigger("daily")).toMatchObject({ outcome: "added" });
    await line.setPartitions(name, 3);
    await line.setPartitions(name, 5);
    expect(await schedules.get("minutely")).toMatchObject({ name: "minutely" });
    expect(await schedules.get("daily")).toMatchObject({ name: "daily" });
    expect(await schedules.remove("minutely")).toBe(true);
  },
);

it.each(["none", "redisson"] as const)(
  "a queue needs no more access if Java also offers and moves (interop %s)",
  async (interop) => {
    const name = uniqueName("acl");
    const java = newRedis();
    const { url } = await newUser(java, name);
    const layouts: Layout[] = ["8-byte ids", "16-byte ids", "old"];
    const line = newLine({ redis: url.href, codec: "string", interop });
    const delayed = line.getDelayedQueue<string>(name);
    const ready = line.getBlockingQueue<string>(name);

    // More than one batch, so that the insertion order is tidied.
    for (const layout of layouts) {
      for (let i = 0; i < 50; i++) await offerAsRedisson(java, name, `${layout} ${i}`, 0, layout);
    }
    let taken = 0;
    while (taken < 150) taken += (await ready.takeMany({ limit: 50 })).length;
    for (const layout of layouts) await offerAsRedisson(java, name, layout, 60_000, layout);
    await delayed.offer("ours", 60_000, { key: "ours" });
    expect(await delayed.insertionOrder.readAll()).toEqual([...layouts, "ours"]);
    expect(await delayed.insertionOrder.contains("old")).toBe(true);
    expect(await delayed.insertionOrder.remove("old")).toBe(true);
    expect(await delayed.insertionOrder.poll()).toBe("8-byte ids");
    expect(await delayed.cancel("ours")).toBe(true);

    await delayed.offer("due", 0, { key: "due" });
    await transferAsRedisson(java, name);
    expect(await ready.take()).toBe("due");
    expect(await delayed.clear()).toBe(1);
  },
);

function wordsFor(command: string, name: string): string[] {
  const list = `delayline_compacted:{${name}}`;
  const order = `redisson_delay_queue:{${name}}`;
  switch (command) {
    case "rename":
      return [list, order];
    case "lrem":
      return [order, "1", "x"];
    case "set":
      return [`delayline_ghosts:{${name}}`, "1"];
    default:
      return [list];
  }
}
