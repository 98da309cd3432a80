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
