import { afterAll, beforeAll, expect, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { cli as cliOn, type CliOptions } from "../../helpers/cli.ts";
import { newLine as newLineOn } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { OwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { formatInstant } from "../../../src/tools/view/instants.ts";

const HOUR = 3_600_000;

let server: OwnServer;
beforeAll(async () => {
  server = await OwnServer.start();
});
afterAll(() => server.stop());

const cli = (argv: readonly string[], options?: CliOptions) =>
  cliOn(argv, { url: server.url, ...options });
const newLine = () => newLineOn({ redis: server.url, transfer: false });

test("schedules shows each one, and one with its next runs in its zone and here", async () => {
  const [name, other] = [uniqueName("a"), uniqueName("b")];
  const line = newLine();
  const { schedules } = line.getReliableQueue(name);
  const { next } = await schedules.upsert("nightly", {
    cron: "30 2 * * *",
    timeZone: "Asia/Tokyo",
    payload: "x",
    overlap: "skip",
    lane: "acme",
    priority: 5,
  });
  await line.getDelayedQueue(other).schedules.upsert("often", { every: HOUR, payload: "y" });
  const all = await cli(["schedules"]);
  expect(all).toMatchObject({ code: 0, stderr: "" });
  expect(all.stdout).toMatch(
    new RegExp(`^${name} +nightly +30 2 \\* \\* \\* Asia/Tokyo +in `, "m"),
  );
  expect(all.stdout).toMatch(new RegExp(`^${other} +often +every 1 h +in .* 2 +0 +active$`, "m"));
  const one = await cli(["schedules", name, "nightly"]);
  expect(one.stdout).toContain(`Schedule "nightly" of queue "${name}": active`);
  expect(one.stdout).toMatch(/^ +lane +"acme"\n +priority +5$/m);
  for (const tick of next) {
    expect(one.stdout).toMatch(/ 02:30:00 Asia\/Tokyo \(here /);
    expect(one.stdout).toContain(`(here ${formatInstant(tick)}, in `);
  }
  const { json } = await cli(["schedules", name, "--json"]);
  expect(json).toMatchObject([{ queue: name, name: "nightly", state: "active", next }]);
});

test("schedules are run, paused, resumed, made up for and removed", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name);
  await queue.schedules.upsert("often", { every: HOUR, payload: "x" });
  const before = await queue.size();
  expect((await cli(["schedules", "run", name, "often"])).code).toBe(2);
  expect(await cli(["schedules", "run", name, "often", "-n"])).toMatchObject({
    code: 0,
    stderr: `Would run 1 schedule of queue "${name}": "often". Nothing was changed.\n`,
  });
  expect(await queue.size()).toBe(before);
  expect((await cli(["schedules", "run", name, "often", "-y"])).stdout).toBe(
    `Offered a run of 1 schedule of queue "${name}".\n`,
  );
  expect(await queue.size()).toBe(before + 1);
  expect((await cli(["schedules", "pause", name, "often", "nope", "-y"])).code).toBe(5);
  expect((await queue.schedules.get("often"))?.isPaused).toBe(true);
  expect((await cli(["schedules", name])).stdout).toMatch(/ paused$/m);
  await cli(["schedules", "resume", name, "often", "-y"]);
  expect((await queue.schedules.get("often"))?.isPaused).toBe(false);
  const span = ["--from", "2026-11-01T00:00Z", "--to", "2026-11-01T05:00Z"];
  const made = await cli(["schedules", "backfill", name, "often", ...span, "-y", "--json"]);
  expect(made.json[0]?.["ticks"]).toHaveLength(5);
  await cli(["schedules", "remove", name, "often", "-y"]);
  expect((await cli(["schedules", name])).code).toBe(1);
  expect(await queue.get(`schedule:often@2026-11-01T04:00:00.000Z!backfill`)).toBeDefined();
});

test("what cannot be done is said", async () => {
  const name = uniqueName();
  const { schedules } = newLine().getReliableQueue<string>(name);
  await schedules.upsert("code", { every: HOUR, payload: ({ at }) => at.toISOString() });
  const run = await cli(["schedules", "run", name, "code", "-y"]);
  expect(run.code).toBe(2);
  expect(run.stderr).toContain("only a process has that has declared it");
  const missing = await cli(["schedules", "pause", name, "nope", "-y"]);
  expect(missing.code).toBe(1);
  expect(missing.stderr).toContain(`has no schedule "nope"`);
  for (const argv of [
    ["schedules", "run"],
    ["schedules", "backfill", name, "code"],
    ["schedules", name, "code", "code"],
    ["schedules", name, "--from", "now"],
    ["schedules", "backfill", name, "code", "--from", "2026-11-02", "--to", "2026-11-01"],
  ]) {
    expect((await cli(argv)).code, argv.join(" ")).toBe(2);
  }
});

test("a schedule that nobody plans is told from one that is over, and from a paused queue", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name);
  await queue.schedules.upsert("often", { every: HOUR, payload: "x" });
  const stateOf = async () => (await cli(["schedules", name, "--json"])).json[0]?.["state"];
  const redis = newRedis(server.url);
  const { schedules: hash } = queueKeys(name);
  // As if the time to plan it had passed without anybody.
  const record = await redis.hget(hash, "often");
  const late = record?.replace(/"planAt":\d+/, `"planAt":${Date.now() - 120_000}`) ?? "";
  await redis.hset(hash, "often", late);
  expect(await stateOf()).toBe("unplanned");
  expect((await cli(["schedules", name])).stdout).toContain("nobody plans it, for 2 min");
  await queue.pause();
  expect(await stateOf()).toBe("active");
  expect((await cli(["schedules", name])).stdout).toContain("queue paused");
});

test("due counts placed occurrences, and says whose later ticks it does not count", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name);
  await queue.schedules.upsert("often", { every: HOUR, payload: "x" });
  const placed = await queue.size();
  const found = await cli(["due", name]);
  expect(found.stderr).toContain(`in spans of 1 h: ${placed}.`);
  expect(found.stderr).toContain(`Not counted: later ticks of schedules`);
  expect(found.stderr).toContain(`"${name}: often"`);
  const { json } = await cli(["due", name, "--json"]);
  expect(json[0]?.["beyond"]).toMatchObject([{ queue: name, schedule: "often" }]);
  await queue.schedules.pause("often");
  expect((await cli(["due", name])).stderr).not.toContain("Not counted");
  await eventually(async () => (await queue.size()) === 0);
});

test("a message that a schedule has placed was not offered: get, list and the JSON say who placed it", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name);
  const { next } = await queue.schedules.upsert("nightly", { every: HOUR, payload: "x" });
  const [tick = NaN] = next;
  const key = `schedule:nightly@${new Date(tick).toISOString()}`;
  const shown = await cli(["get", name, key]);
  expect(shown.stdout).toMatch(/placed by +schedule nightly, tick 20/);
  expect(shown.stdout).toContain(`tick ${formatInstant(tick)} (in `);
  expect(shown.stdout).not.toContain("offered");
  const words = `schedule nightly, tick ${formatInstant(tick)}`;
  const listed = await cli(["list", name]);
  expect(listed.stdout).toMatch(/^DUE +ID +KEY +PLACED BY\n/);
  expect(listed.stdout).toContain(words);
  await queue.offer("y", 2 * HOUR, { key: "own" });
  expect((await cli(["list", name])).stdout).toMatch(/ own +-\n/);
  expect((await cli(["list", name, "--payload"])).stdout).toContain(`${key}  ${words}\n`);
  await queue.cancel("own");
  const { json } = await cli(["list", name, "--json"]);
  expect(json[0]).toMatchObject({ key, schedule: "nightly", tick });
  expect(json[0]).not.toHaveProperty("offeredAt");
  // A user's own message may have such a key.
  const own = await queue.offer("x", HOUR, { key: "schedule:mine@2026-11-24T01:30:00.000Z" });
  expect((await cli(["get", name, own.id])).stdout).toMatch(/offered +20/);
});
