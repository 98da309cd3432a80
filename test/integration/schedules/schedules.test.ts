import { expect, test } from "vitest";
import type { Delayline, PlainQueue, ScheduleOptions } from "../../../src/index.ts";
import { defineQueue } from "../../../src/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { DAY, HOUR, MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

/** A plain queue of texts, opened as by one process. */
function open(name: string, line: Delayline = newLine()): PlainQueue<string> {
  return line.open(defineQueue<string>(name));
}

/** The ready payloads, in order. */
async function readied(queue: PlainQueue<string>): Promise<string[]> {
  return await queue.ready.readAll();
}

async function keysOf(queue: PlainQueue<string>): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key = "" } of queue.soonest()) keys.push(key);
  return keys;
}

const at = { payload: ({ at: tick }: { at: Date }) => tick.toISOString().slice(11, 19) };

test("each tick of a schedule becomes ready, at its instant, with a key that names it", async () => {
  const name = uniqueName("schedules");
  const orders = open(name);
  const added = await orders.schedules.upsert("go", { every: 200, payload: "now" });
  expect(added.outcome).toBe("added");
  const [first = 0, second = 0] = added.next;
  expect([first % 200, second - first]).toEqual([0, 200]);
  const last = added.next.at(-1) ?? 0;
  const key = `schedule:go@${new Date(last).toISOString()}`;
  expect(await orders.get(key)).toMatchObject({ payload: "now", deadline: last });
  for (let i = 0; i < 4; i++) expect(await orders.take()).toBe("now");
  expect(Date.now()).toBeGreaterThanOrEqual(first + 600);
});

test("it goes on when all that was placed at first has come, whichever process declared it", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock();
  const declaring = newLine({ transfer: false });
  await open(name, declaring).schedules.upsert("go", { every: SECOND, payload: "now" });
  const orders = open(name);
  await orders.size();
  await declaring.close();
  await clock.advance(3 * MINUTE);
  const count = (await readied(orders)).length;
  expect([179, 180, 181]).toContain(count);
  expect((await orders.schedules.get("go"))?.next.length).toBeGreaterThan(10);
});

test("another declaration withdraws what is placed of the old one; the count and a pause stay", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock();
  const orders = open(name);
  await orders.schedules.upsert("go", { every: 10 * SECOND, payload: "old" });
  await clock.advance(60 * SECOND);
  const before = (await orders.schedules.get("go"))?.count ?? 0;
  const ahead = (await orders.schedules.get("go"))?.next.length ?? 0;
  expect(await orders.schedules.upsert("go", { every: HOUR, payload: "new" })).toMatchObject({
    outcome: "changed",
  });
  expect((await orders.schedules.get("go"))?.count).toBe(before - ahead + 2);
  expect(await keysOf(orders)).toHaveLength(2);
  await clock.advance(2 * HOUR);
  expect(new Set((await readied(orders)).slice(6))).toEqual(new Set(["new"]));

  expect(await orders.schedules.pause("go")).toBe(true);
  expect(await orders.size()).toBe(0);
  await orders.schedules.upsert("go", { every: MINUTE, payload: "newer" });
  expect(await orders.schedules.get("go")).toMatchObject({ isPaused: true, next: [] });
  expect(await orders.size()).toBe(0);
});

/** A schedule whose function makes this payload. */
const made = (text: string, version: number): ScheduleOptions<string> => ({
  every: HOUR,
  payload: () => text,
  version,
});

test("a lower version changes nothing, and is told so; a higher one replaces what is placed", async () => {
  const name = uniqueName("schedules");
  const orders = open(name);
  await orders.schedules.upsert("go", made("2", 2));
  const record = await newRedis().hgetBuffer(`delayline_schedules:{${name}}`, "go");
  expect(await orders.schedules.upsert("go", made("1", 1))).toMatchObject({ outcome: "outdated" });
  expect(await orders.schedules.upsert("go", made("2b", 2))).toMatchObject({
    outcome: "unchanged",
  });
  expect(await newRedis().hgetBuffer(`delayline_schedules:{${name}}`, "go")).toEqual(record);
  const { outcome, next } = await orders.schedules.upsert("go", made("3", 3));
  expect(outcome).toBe("changed");
  const key = `schedule:go@${new Date(next[0] ?? 0).toISOString()}`;
  expect(await orders.get(key)).toMatchObject({ payload: "3" });
  expect(await orders.size()).toBe(2);
});

test("a deploy while it is paused leaves it paused, and a run that was cancelled does not come back", async () => {
  const name = uniqueName("schedules");
  const orders = open(name);
  const options = { every: HOUR, payload: "go" };
  const { next } = await orders.schedules.upsert("a", options);
  expect(await orders.cancel(`schedule:a@${new Date(next[0] ?? 0).toISOString()}`)).toBe(true);
  expect(await orders.schedules.upsert("a", options)).toMatchObject({ outcome: "unchanged" });
  expect(await keysOf(orders)).toEqual([`schedule:a@${new Date(next[1] ?? 0).toISOString()}`]);
  await orders.schedules.pause("a");
  expect(await open(name).schedules.upsert("a", options)).toMatchObject({ outcome: "unchanged" });
  expect(await orders.schedules.get("a")).toMatchObject({ isPaused: true });
  expect(await orders.size()).toBe(0);
});

test("resuming does not catch up the pause", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock();
  const orders = open(name);
  await orders.schedules.upsert("go", { every: MINUTE, misfire: "all", payload: "now" });
  await orders.schedules.pause("go");
  await clock.advance(HOUR);
  expect(await readied(orders)).toEqual([]);
  expect(await orders.schedules.resume("go")).toBe(true);
  await clock.advance(5 * MINUTE);
  expect(await readied(orders)).toHaveLength(5);
  expect(await orders.schedules.get("go")).toMatchObject({ missed: 0, isPaused: false });
  for (const change of ["pause", "resume", "remove"] as const) {
    expect(await orders.schedules[change]("none")).toBe(false);
  }
});

test("a function makes each payload; a process without it moves the messages, and leaves planning to others", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock();
  const declaring = newLine();
  await open(name, declaring).schedules.upsert("go", { every: 10 * MINUTE, ...at });
  const orders = open(name);
  await clock.advance(HOUR);
  expect(new Set(await readied(orders)).size).toBe(6);
  await declaring.close();
  await clock.advance(HOUR);
  // What was placed comes, and nobody places more.
  const left = (await readied(orders)).length;
  expect([7, 8]).toContain(left);
  expect(await orders.schedules.get("go")).toMatchObject({ needs: "code", next: [] });
  await open(name).schedules.upsert("go", { every: 10 * MINUTE, ...at });
  await clock.advance(HOUR);
  expect((await readied(orders)).length).toBe(left + 7);
});

test.each([
  ["once", ["01:00:00"], 5],
  ["skip", [], 6],
  ["all", ["00:10:00", "00:20:00", "00:30:00", "00:40:00", "00:50:00", "01:00:00"], 0],
] as const)("misfire %s: no process ran for an hour", async (misfire, runs, missed) => {
  const name = uniqueName("schedules");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const options = { every: 10 * MINUTE, misfire, ...at };
  const declaring = newLine();
  await open(name, declaring).schedules.upsert("go", options);
  await declaring.close();
  await clock.advanceTo("2026-06-01T01:05:30Z");
  const late = open(name);
  await late.schedules.upsert("go", options);
  await clock.advance(SECOND);
  expect(await readied(late)).toEqual(runs);
  const { missed: told = NaN, next = [] } = (await late.schedules.get("go")) ?? {};
  // Two of them were placed, and dropped when they were moved.
  expect(told).toBe(missed);
  expect(next).toEqual(["01:10", "01:20"].map((time) => Date.parse(`2026-06-01T${time}Z`)));
});

test("misfire all comes in pages, and ends at maxCatchUp; what is later is missed", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock({ now: "2026-06-01T00:00:00.500Z" });
  const options = { every: SECOND, misfire: "all", maxCatchUp: 250, ...at } as const;
  const declaring = newLine();
  const { next } = await open(name, declaring).schedules.upsert("go", options);
  await declaring.close();
  await clock.advance(10 * MINUTE);
  const late = open(name);
  await late.schedules.upsert("go", options);
  await clock.advance(2 * SECOND);
  const runs = await readied(late);
  const expected = Array.from({ length: next.length + 250 }, (_, i) =>
    new Date(Date.UTC(2026, 5, 1, 0, 0, i + 1)).toISOString().slice(11, 19),
  );
  expect(runs.slice(0, -2)).toEqual(expected);
  expect(runs.slice(-2)).toEqual(["00:10:01", "00:10:02"]);
});

test("while the queue is paused nothing is planned; then it is as if no process had run", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const orders = open(name);
  await orders.schedules.upsert("go", { every: SECOND, ...at });
  await orders.pause();
  await clock.advance(HOUR);
  expect(await orders.size()).toBeLessThan(60);
  await orders.resume();
  await clock.advance(SECOND / 2);
  expect(await readied(orders)).toEqual(["01:00:30"]);
});

test("a schedule over a daylight-saving night: the skipped time comes once, the double one too", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock({ now: "2026-03-27T12:00:00Z" });
  const orders = open(name);
  const iso = { payload: ({ at: tick }: { at: Date }) => tick.toISOString() };
  const berlin = { cron: "30 2 * * *", timeZone: "Europe/Berlin" };
  await orders.schedules.upsert("night", { ...berlin, ...iso });
  await clock.advance(3 * DAY);
  expect(await readied(orders)).toEqual([
    "2026-03-28T01:30:00.000Z",
    "2026-03-29T01:00:00.000Z",
    "2026-03-30T00:30:00.000Z",
  ]);
});

test("after its end and its limit a schedule is over, and can be declared again", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const orders = open(name);
  const twice = { every: MINUTE, limit: 2, ...at };
  const until = { every: MINUTE, endAt: new Date("2026-06-01T00:03:00Z"), ...at };
  await orders.schedules.upsert("twice", twice);
  await orders.schedules.upsert("until", until);
  await clock.advance(HOUR);
  expect((await readied(orders)).toSorted()).toEqual(
    ["00:01:00", "00:01:00", "00:02:00", "00:02:00", "00:03:00"].toSorted(),
  );
  expect(await orders.schedules.get("twice")).toMatchObject({ count: 2, planAt: Infinity });
  expect(await orders.schedules.upsert("until", until)).toEqual({ outcome: "unchanged", next: [] });
  const third = { ...twice, limit: 3 };
  expect(await orders.schedules.upsert("twice", third)).toMatchObject({ outcome: "changed" });
  await clock.advance(5 * MINUTE);
  expect(await readied(orders)).toHaveLength(6);
});

test("an operator who deletes the record ends the schedule: what is placed comes", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock();
  const orders = open(name);
  await orders.schedules.upsert("go", { every: MINUTE, payload: "go" });
  await newRedis().del(`delayline_schedules:{${name}}`);
  await clock.advance(HOUR);
  expect(await readied(orders)).toHaveLength(2);
  await eventually(async () => (await newRedis().exists(`delayline_planning:{${name}}`)) === 0);
});

test.each(["nonsense", "0123456789abcdef|nonsense\n", "ABC|"])(
  "bytes that are no record (%j) are no schedule, and a declaration replaces them",
  async (bytes) => {
    const name = uniqueName("schedules");
    const { schedules } = open(name);
    await newRedis().hset(`delayline_schedules:{${name}}`, "go", bytes);
    expect(await schedules.get("go")).toBeUndefined();
    expect(await schedules.remove("go")).toBe(false);
    const { outcome } = await schedules.upsert("go", { every: MINUTE, payload: "go" });
    expect(outcome).toBe("added");
    expect(await schedules.get("go")).toMatchObject({ every: MINUTE });
  },
);

test("keys have the prefix of the client; a guard of overlap and the planner find them", async () => {
  const name = uniqueName("prefixed");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const line = newLine({ redis: { url: redisUrl(), keyPrefix: "app:" } });
  const jobs = line.getReliableQueue<string>(name);
  await jobs.schedules.upsert("job", { every: MINUTE, overlap: "skip", misfire: "all", ...at });
  await clock.advance(5 * MINUTE);
  expect(await jobs.stats()).toMatchObject({ ready: 1, droppedOverlap: 4 });
  const keys = await newRedis().keys(`*{${name}}*`);
  expect(keys).toContain(`app:delayline_schedules:{${name}}`);
  expect(keys.filter((key) => !key.startsWith("app:"))).toEqual([]);
});

test("pausing and removing withdraws messages that have not migrated yet", async () => {
  const name = uniqueName("parted");
  const line = newLine();
  const queue = line.getReliableQueue<string>(name);
  await queue.schedules.upsert("a", { every: 3_600_000, payload: "hourly" });
  const parted = newLine({ transfer: false }).getReliableQueue<string>(name, { partitions: 3 });
  expect(await parted.schedules.pause("a")).toBe(true);
  expect(await parted.size()).toBe(0);
  expect(await parted.schedules.get("a")).toMatchObject({ isPaused: true });
});
