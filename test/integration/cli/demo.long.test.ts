import { existsSync, readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { linesOf, shapeOf, storyOf } from "../../../scripts/demo-picture.ts";
import { CliProcess, COMMAND_WORDS } from "../../helpers/cli.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { isRunning } from "../../helpers/is-running.ts";
import { keyspaceOf } from "../../helpers/keyspace.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis } from "../../helpers/redis.ts";

/** The process ids of the demo's workers. */
function pidsIn(story: string): number[] {
  return Array.from(story.matchAll(/worker-\d+ \(pid (\d+)\)/g), ([, pid]) => Number(pid));
}

/** The Redis that the demo has started. */
async function redisOf(story: string): Promise<{ serverPid: number; directory: string }> {
  const [, port = ""] = /127\.0\.0\.1:(\d+), started/.exec(story) ?? [];
  const redis = new Redis(Number(port), { retryStrategy: () => null });
  const [, directory = ""] = await redis.config("GET", "dir");
  const serverPid = Number(/process_id:(\d+)/.exec(await redis.info("server"))?.[1]);
  redis.disconnect();
  return { serverPid, directory };
}

test("on a Redis of the user's, the demo loses no order, and leaves no key and no process", async () => {
  const server = await startOwnServer();
  await newLine({ redis: server.url, transfer: false })
    .getDelayedQueue("mine")
    .offer("x", 3_600_000);
  const redis = newRedis(server.url);
  const before = await keyspaceOf(redis);
  const { code, stdout, stderr } = await new CliProcess(["demo", "--once"], {
    env: { REDIS_URL: server.url },
  }).ended;
  expect([code, stderr]).toEqual([
    0,
    expect.stringContaining("The queue is gone: nothing is left"),
  ]);
  expect(stdout).toMatch(/order:10 is paid in time/);
  expect(stdout).toMatch(/worker-\d \(pid \d+\) is dead, with order:\d in its hands/);
  expect(stdout).toMatch(/order:\d is taken again, by worker-\d: attempt 2/);
  expect(stdout).toContain("10 orders: 9 done, 1 paid in time, 0 lost.\n1 delivered twice:");
  expect(pidsIn(stdout).filter(isRunning)).toEqual([]);
  expect(await keyspaceOf(redis)).toEqual(before);
  // The README's picture shows what the demo prints, but for its numbers.
  const shown = linesOf(readFileSync("docs/images/demo.svg", "utf8")).map(shapeOf);
  expect(shown.length).toBeGreaterThan(15);
  const printed = new Set(storyOf(stdout).map(shapeOf));
  expect(shown.filter((shape) => !printed.has(shape))).toEqual([]);
});

test("without a Redis the demo says what to install", async () => {
  const env = { REDIS_URL: "", PATH: "/nowhere" };
  const { code, stderr } = await new CliProcess(["demo", "--once"], { env }).ended;
  expect(code).toBe(3);
  expect(stderr).toContain("\n  Debian, Ubuntu   sudo apt-get install redis-server\n");
});

test("without a terminal the demo asks for --once", async () => {
  const { code, stderr } = await new CliProcess(["demo"]).ended;
  expect(code).toBe(2);
  expect(stderr).toContain("give --once");
});

const hasTerminal = existsSync("/usr/bin/script");
if (!hasTerminal) console.warn("not tested: keys of the demo, since there is no script(1)");

test.skipIf(!hasTerminal)("keys take part in the demo, and Ctrl-C leaves nothing", async () => {
  const words = [...COMMAND_WORDS, "demo"].join(" ");
  const demo = new CliProcess(["-qec", words, "/dev/null"], {
    env: { REDIS_URL: "" },
    words: ["script"],
  });
  await eventually(() => demo.stdout.includes("are placed"), { within: 60_000 });
  const { serverPid, directory } = await redisOf(demo.stdout);
  demo.type("p");
  await eventually(() => demo.stdout.includes("order:10 is paid in time"));
  await eventually(() => / is due: worker-\d/.test(demo.stdout));
  demo.type("k");
  await eventually(() => /worker-\d \(pid \d+\).* is dead/.test(demo.stdout));
  demo.type("w");
  await eventually(() => /worker-3 \(pid \d+\) takes orders/.test(demo.stdout));
  const pids = pidsIn(demo.stdout);
  const taken = () => demo.stdout.split(" is due: worker-").length;
  const before = taken();
  await eventually(() => taken() > before);
  demo.type("\u0003");
  const { code, stdout } = await demo.ended;
  expect(code).toBe(130);
  expect(stdout).toContain("The queue is gone, and Redis stops: nothing is left behind.");
  expect(stdout).not.toContain("Error");
  expect([...pids, serverPid].filter(isRunning)).toEqual([]);
  expect(directory).toContain("delayline-redis-");
  expect(existsSync(directory)).toBe(false);
});

test("the demo's workers and its Redis end with it, even if it is killed", async () => {
  const demo = new CliProcess(["demo", "--once"], { env: { REDIS_URL: "" } });
  await eventually(() => demo.stdout.includes("are placed"), { within: 60_000 });
  const pids = pidsIn(demo.stdout);
  const { serverPid } = await redisOf(demo.stdout);
  expect(pids).toHaveLength(2);
  demo.kill("SIGKILL");
  const all = [...pids, serverPid];
  await eventually(() => !all.some(isRunning), { within: 30_000 });
});
