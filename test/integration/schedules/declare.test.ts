import { expect, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { DAY, HOUR, MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

const EACH_HOUR = { every: HOUR, payload: "hourly" };
const EACH_DAY = { every: DAY, payload: "daily" };
const NOTHING = { added: [], changed: [], unchanged: [], removed: [] };

const iso = ({ at }: { readonly at: Date }) => at.toISOString().slice(5, 16);

function open(name: string) {
  return newLine().getDelayedQueue<string>(name).schedules;
}

async function namesIn(schedules: ReturnType<typeof open>): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of schedules.list()) names.push(name);
  return names.toSorted();
}

test("a set: new ones are added, changed ones changed, absent ones removed; what is the same is not written", async () => {
  const name = uniqueName("declare");
  const redis = newRedis();
  const schedules = open(name);
  await schedules.upsert("other", EACH_DAY);
  const first = await schedules.declare(
    "set",
    { a: EACH_HOUR, b: EACH_HOUR, c: EACH_DAY },
    { revision: 1 },
  );
  expect(first).toEqual({ ...NOTHING, outcome: "declared", added: ["a", "b", "c"] });
  expect(await schedules.get("a")).toMatchObject({ set: "set" });
  const a = await redis.hgetBuffer(`delayline_schedules:{${name}}`, "a");

  const next = { a: EACH_HOUR, b: EACH_DAY, d: EACH_DAY };
  const differs = { ...NOTHING, added: ["d"], changed: ["b"], unchanged: ["a"], removed: ["c"] };
  const dry = await open(name).declare("set", next, { revision: 2, dryRun: true });
  expect(dry).toEqual({ ...differs, outcome: "declared" });
  expect(await namesIn(schedules)).toEqual(["a", "b", "c", "other"]);
  expect(await open(name).declare("set", next, { revision: 2 })).toEqual({
    ...differs,
    outcome: "declared",
  });
  expect(await namesIn(schedules)).toEqual(["a", "b", "d", "other"]);
  expect(await redis.hgetBuffer(`delayline_schedules:{${name}}`, "a")).toEqual(a);
});

test("an older revision is told so and does nothing: a rolling deploy does not flap, and leaves no ghost", async () => {
  const name = uniqueName("declare");
  const [old, current] = [open(name), open(name)];
  const before = { a: EACH_HOUR, gone: EACH_HOUR };
  await old.declare("set", before, { revision: 1 });
  await current.declare("set", { a: EACH_DAY }, { revision: 2 });
  for (let i = 0; i < 3; i++) {
    const dryRun = i === 2;
    expect(await open(name).declare("set", before, { revision: 1, dryRun })).toEqual({
      ...NOTHING,
      outcome: "outdated",
    });
  }
  expect(await namesIn(current)).toEqual(["a"]);
  expect(await current.get("a")).toMatchObject({ every: DAY });
  // Back to the release before, as a new one.
  expect(await old.declare("set", before, { revision: 3 })).toMatchObject({ added: ["gone"] });
});

test("the same revision with other schedules is a conflict: nothing is done, also by turns", async () => {
  const name = uniqueName("declare");
  const [one, other] = [{ a: EACH_HOUR, b: EACH_DAY }, { a: EACH_DAY }];
  await open(name).declare("set", one, { revision: 1 });
  const before = await newRedis().hgetall(`delayline_schedules:{${name}}`);
  for (let i = 0; i < 4; i++) {
    const dryRun = i > 1;
    const [same, conflict] = [
      await open(name).declare("set", { b: EACH_DAY, a: EACH_HOUR }, { revision: 1, dryRun }),
      await open(name).declare("set", other, { revision: 1, dryRun }),
    ];
    expect(same).toEqual({ ...NOTHING, outcome: "declared", unchanged: ["b", "a"] });
    expect(conflict).toEqual({ ...NOTHING, outcome: "conflict" });
  }
  expect(await newRedis().hgetall(`delayline_schedules:{${name}}`)).toEqual(before);
  expect(await open(name).revisionOf("set")).toBe(1);
  expect(await open(name).revisionOf("none")).toBeUndefined();
  const next = await open(name).declare("set", other, { revision: 2 });
  expect(next).toMatchObject({ outcome: "declared", changed: ["a"], removed: ["b"] });
  expect(await open(name).declare("set", one, { revision: 1 })).toMatchObject({
    outcome: "outdated",
  });
});

test("a conflict is found in partitions, too, and where the number has changed", async () => {
  const name = uniqueName("declare");
  const line = newLine();
  const { schedules } = line.getReliableQueue<string>(name, { partitions: 2 });
  await schedules.declare("set", { a: EACH_HOUR }, { revision: 7 });
  await line.setPartitions(name, 4);
  expect(await schedules.declare("set", { a: EACH_DAY }, { revision: 7 })).toMatchObject({
    outcome: "conflict",
  });
  expect(await schedules.declare("set", { a: EACH_HOUR }, { revision: 7 })).toMatchObject({
    outcome: "declared",
    unchanged: ["a"],
  });
  expect(await schedules.revisionOf("set")).toBe(7);
});

test("startAt of each start is the same declaration: nothing is withdrawn, in a set and without", async () => {
  const name = uniqueName("declare");
  const clock = await newClock({ now: "2026-06-10T00:00:30Z" });
  const { schedules } = newLine({ transfer: false }).getDelayedQueue<string>(name);
  const start = (ahead = 0) => ({ ...EACH_HOUR, startAt: new Date(clock.now.getTime() + ahead) });
  await schedules.upsert("a", start());
  await schedules.declare("set", { b: start() }, { revision: 1 });
  const before = await newRedis().hgetall(`delayline_schedules:{${name}}`);
  for (let i = 0; i < 3; i++) {
    await clock.advance(10 * MINUTE);
    // A clock that is a little fast.
    expect(await schedules.upsert("a", start(i * SECOND))).toMatchObject({ outcome: "unchanged" });
    expect(await schedules.declare("set", { b: start(SECOND) }, { revision: 1 })).toMatchObject({
      unchanged: ["b"],
    });
  }
  expect(await newRedis().hgetall(`delayline_schedules:{${name}}`)).toEqual(before);
  // One that leaves a tick out is another one.
  expect(await schedules.upsert("a", start(HOUR))).toMatchObject({ outcome: "changed" });
});

test.each<[what: string, payload: unknown, why: string]>([
  ["that returns nothing", () => undefined, "payload must not be undefined"],
  ["that is asynchronous", async () => await Promise.resolve("x"), "payload must not be a promise"],
  ["instead of which there is nothing", undefined, "payload must not be undefined"],
])("a payload %s is refused, and nothing is stored", async (_, payload, why) => {
  const name = uniqueName("declare");
  const schedules = newLine().getDelayedQueue(name).schedules;
  await expect(schedules.upsert("a", { every: HOUR, payload })).rejects.toThrow(why);
  const set = schedules.declare("set", { a: { every: HOUR, payload } }, { revision: 1 });
  await expect(set).rejects.toThrow(why);
  expect(await namesIn(schedules as ReturnType<typeof open>)).toEqual([]);
});

test("whatever two releases do at the same time, the newer one's set is what stays", async () => {
  const name = uniqueName("declare");
  for (let i = 1; i <= 6; i++) {
    const [old, current] = [2 * i, 2 * i + 1];
    const olds = Object.fromEntries(
      Array.from({ length: 5 }, (_, n) => [`old ${i} ${n}`, EACH_DAY]),
    );
    const releases = Array.from({ length: 3 }, async (_, n) => {
      const revision = n === 1 ? current : old;
      await open(name).declare("set", n === 1 ? { [`new ${i}`]: EACH_DAY } : olds, { revision });
    });
    await Promise.all(releases);
    expect(await namesIn(open(name))).toEqual([`new ${i}`]);
  }
  expect(await newLine().getDelayedQueue(name).size()).toBe(2);
});

test("everything is checked before anything is stored", async () => {
  const name = uniqueName("declare");
  const schedules = open(name);
  const set = { a: EACH_HOUR, b: { cron: "0 0 30 2 *", payload: "never" } };
  await expect(schedules.declare("set", set, { revision: 1 })).rejects.toThrow(
    'cron must come at some time, got "0 0 30 2 *"',
  );
  await expect(schedules.declare("set", {}, { revision: -1 })).rejects.toThrow("revision must be");
  await expect(schedules.declare("", {}, { revision: 1 })).rejects.toThrow(
    "set must have 1 to 100",
  );
  expect(await newRedis().keys(`*{${name}}*`)).toEqual([]);
  await schedules.declare("one", { a: EACH_HOUR }, { revision: 1 });
  await expect(schedules.declare("two", { a: EACH_HOUR }, { revision: 1 })).rejects.toThrow(
    'schedule "a" must not be in two sets, got "two", and it is in "one"',
  );
});

test.each<[what: string, schedules: unknown]>([
  ["a Map", new Map([["a", EACH_HOUR]])],
  ["an array", [EACH_HOUR]],
  ["nothing", null],
])("%s is refused in place of a set, and removes no schedule", async (_, schedules) => {
  const all = open(uniqueName("declare"));
  await all.declare("set", { a: EACH_HOUR }, { revision: 1 });
  const declaring = all.declare("set", schedules as Record<string, never>, { revision: 2 });
  await expect(declaring).rejects.toThrow("schedules must be an object of schedules by name");
  expect(await all.get("a")).toBeDefined();
});

test("trigger offers a message now, beside the plan, also of a paused schedule", async () => {
  const name = uniqueName("trigger");
  const line = newLine();
  const orders = line.getDelayedQueue<string>(name);
  expect(await orders.schedules.trigger("a")).toBeUndefined();
  await orders.schedules.upsert("a", EACH_DAY);
  await orders.schedules.pause("a");
  const before = await orders.schedules.get("a");
  expect(await orders.schedules.trigger("a")).toMatchObject({ outcome: "added" });
  expect(await orders.schedules.trigger("a")).toMatchObject({ outcome: "added" });
  const ready = line.getBlockingQueue<string>(name);
  expect([await ready.take(), await ready.take()]).toEqual(["daily", "daily"]);
  expect(await orders.schedules.get("a")).toEqual(before);
  await orders.schedules.upsert("f", { every: DAY, payload: () => "made" });
  expect(await orders.schedules.trigger("f")).toMatchObject({ outcome: "added" });
  expect(await ready.take()).toBe("made");
  await expect(open(name).trigger("f")).rejects.toThrow(
    "which only a process has that has declared it",
  );
});

test("backfill leaves out what comes by itself, and refuses a span that is longer than meant", async () => {
  const name = uniqueName("backfill");
  const clock = await newClock({ now: "2026-06-10T12:30:00Z" });
  const line = newLine();
  const orders = line.getReliableQueue<string>(name);
  await orders.schedules.upsert("hourly", { ...EACH_HOUR, jitter: HOUR / 2, misfire: "all" });
  const [from, to] = [new Date("2026-06-10T10:00:00Z"), new Date("2026-06-10T16:00:00Z")];
  const ticks = await orders.schedules.backfill("hourly", { from, to, dryRun: true });
  expect(await orders.size()).toBe(2);
  expect(await orders.schedules.backfill("hourly", { from, to })).toEqual(ticks);
  await clock.advance(5 * HOUR);
  const keys = (await orders.takeMany({ limit: 100 })).map(({ key = "" }) => key.slice(16, 40));
  expect(new Set(keys).size).toBe(keys.length);
  expect(ticks).toHaveLength(6);

  const ahead = { from: new Date("2027-06-10T10:00:00Z"), to: new Date("2027-06-11T10:00:00Z") };
  const waiting = await orders.size();
  expect(await orders.schedules.backfill("hourly", ahead)).toHaveLength(24);
  expect(await orders.size()).toBe(waiting);
  const year = { from: new Date("2025-06-10T10:00:00Z"), to };
  await expect(orders.schedules.backfill("hourly", year)).rejects.toThrow(
    "backfill of more than 100 ticks needs a limit",
  );
  expect((await orders.stats()).ready).toBe(0);
  expect(await orders.schedules.backfill("hourly", { ...year, limit: 3 })).toHaveLength(3);
  const wrong = orders.schedules.backfill("hourly", { from, to, dryRun: 1 as unknown as boolean });
  await expect(wrong).rejects.toThrow("dryRun must be a boolean");
});

test("backfill offers the ticks of a span once more, in order, once while they are delayed", async () => {
  const name = uniqueName("backfill");
  const clock = await newClock({ now: "2026-06-10T00:00:30Z" });
  const line = newLine();
  const orders = line.getReliableQueue<string>(name);
  const berlin = { cron: "30 2 * * *", timeZone: "Europe/Berlin" };
  await orders.schedules.upsert("night", { ...berlin, except: ["2026-06-03"], payload: iso });
  const range = { from: new Date("2026-06-01T00:30:00Z"), to: new Date("2026-06-05T00:30:00Z") };
  await orders.pause();
  const ticks = await orders.schedules.backfill("night", range);
  expect(await orders.schedules.backfill("night", range)).toEqual(ticks);
  expect(await orders.size()).toBe(3 + 2);
  await orders.resume();
  await clock.advance(SECOND);
  const all = await orders.takeMany({ limit: 10 });
  expect(all.map(({ payload }) => payload)).toEqual(["06-01T00:30", "06-02T00:30", "06-04T00:30"]);
  expect(all[0]?.key).toBe("schedule:night@2026-06-01T00:30:00.000Z!backfill");
  for (const delivery of all) await delivery.ack();
  expect(await orders.schedules.backfill("night", { ...range, limit: 1 })).toEqual(
    ticks.slice(0, 1),
  );
  await eventually(async () => (await orders.stats()).ready === 1);
  await expect(orders.schedules.backfill("none", range)).rejects.toThrow(
    "backfill needs a schedule",
  );
  const swapped = orders.schedules.backfill("night", { from: range.to, to: range.from });
  await expect(swapped).rejects.toThrow("to must be after from");
  await clock.advance(MINUTE);
});
