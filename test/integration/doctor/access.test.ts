import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { OfferError } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { dashboard } from "../../../src/tools/dashboard/index.ts";
import { documentedRules } from "../../helpers/acl-user.ts";
import { cli } from "../../helpers/cli.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { diagnosis, inShort } from "../../helpers/diagnosis.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { useSoundServer } from "../../helpers/sound-server.ts";

// The access rules of docs/operations/setting-up.md, and what the doctor says about each that is missing.

const server = useSoundServer();

/** A user with exactly these rules. */
async function newUser(rules: readonly string[]): Promise<string> {
  const user = uniqueName("user");
  await server.admin.call("ACL", "SETUSER", user, "reset", "on", ">secret", ...rules);
  onTestFinished(async () => void (await server.admin.call("ACL", "DELUSER", user)));
  const url = new URL(server.url);
  [url.username, url.password] = [user, "secret"];
  return url.href;
}

const HOUR = 3_600_000;

it.each([
  ["plain", {}],
  ["partitioned", { partitions: 2 }],
])("with the documented rules every tool works on a %s queue", async (_, options) => {
  const url = await newUser(await documentedRules("orders"));
  const line = newLine({ redis: url, codec: "string" });
  const queue = line.getDelayedQueue("orders", options);
  await queue.offer("later", HOUR, { key: "later" });
  const [run, runs] = runsOf(url);
  for (const words of [
    "queues",
    "stats",
    "stats orders",
    "list orders",
    "search orders --prefix l",
    "get orders later",
    "due orders",
    "partitions orders",
    "reschedule orders later --in 5m --yes",
    "pause orders --yes",
    "resume orders --yes",
    "deliver-now orders later --yes",
  ]) {
    await run(words);
  }
  await queue.offer("a", HOUR, { key: "a" });
  await run("cancel orders a --yes");
  await server.admin.rpush(queueKeys("orders").quarantine, "x");
  for (const word of ["list", "requeue", "remove"]) await run(`quarantine ${word} orders --yes`);
  const folder = await mkdtemp(join(tmpdir(), "delayline-access-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await run(`export orders ${folder}/orders.jsonl`);
  await run(`import ${folder}/orders.jsonl --queue orders --yes`);
  await run("partitions orders --set 3 --yes");
  expect(runs.filter(({ code, said }) => code > 1 || /NOPERM|permission/i.test(said))).toEqual([]);
});

it("with the documented rules every tool works on a reliable queue", async () => {
  const url = await newUser(await documentedRules("orders"));
  const line = newLine({ redis: url, codec: "string" });
  const queue = line.getReliableQueue("orders");
  await queue.offer("a", 0, { key: "a" });
  await (await queue.take()).reject("enough");
  await queue.offer("b", 0, { key: "b" });
  await queue.take();
  const [run, runs] = runsOf(url);
  for (const words of [
    "stats orders",
    "get orders a",
    "list orders --state dead",
    "list orders --state ready",
    "dead list orders",
    "dead redrive orders --yes",
    "dead remove orders --all --yes",
  ]) {
    await run(words);
  }
  expect(runs.filter(({ code, said }) => code > 1 || /NOPERM|permission/i.test(said))).toEqual([]);
});

/** Runs the command as this user, and notes each run. */
function runsOf(url: string) {
  const runs: { words: string; code: number; said: string }[] = [];
  const run = async (words: string) => {
    const { code, stdout, stderr } = await cli(words.split(" "), { url });
    runs.push({ words, code, said: stdout + stderr });
  };
  return [run, runs] as const;
}

it("with the documented rules the dashboard's calls are answered, and the doctor misses no right", async () => {
  const url = await newUser(await documentedRules("orders"));
  await newLine({ redis: url, transfer: false }).getDelayedQueue("orders").offer(1, HOUR);
  await using page = dashboard({ redis: url, authorize: () => true });
  for (const call of [
    "queues",
    "queues/orders",
    "queues/orders/history",
    "queues/orders/forecast",
    "queues/orders/consumers",
    "queues/orders/messages?state=delayed",
    "queues/orders/message?find=x",
    "queues/orders/quarantine",
  ]) {
    const response = await page(new Request(`http://localhost/api/${call}`));
    expect([call, await response.text()].join(" ")).not.toMatch(/NOPERM|permission/i);
  }
  expect(inShort(await diagnosis({ redis: url }))).toEqual([
    "notice config",
    "warning no-transfer orders",
  ]);
});

it("names each missing rule for keys and channels, and it is enough to allow that", async () => {
  await newLine({ redis: server.url, transfer: false }).getDelayedQueue("orders").offer(1, HOUR);
  const rules = await documentedRules("orders");
  // Whoever has an ordinary queue can do without these.
  const forPartitions = /^(?:~\{orders|~redisson\S*\{orders\/|&\S*\{orders\/)/;
  const needed = rules.filter((rule) => /^[~&]/.test(rule) && !forPartitions.test(rule));
  expect(needed).toHaveLength(6);
  for (const missing of needed) {
    // A plain queue needs no notices.
    if (missing.startsWith("&delayline_notices")) continue;
    const url = await newUser(rules.filter((rule) => rule !== missing));
    const findings = await diagnosis({ redis: url, queues: ["orders"] });
    const access = findings.filter(({ check }) => check === "access");
    expect(access, missing).toHaveLength(1);
    expect(access[0]?.what).toContain(`: ${missing} is missing`);
    expect(findings.filter(({ check }) => check === "refused")).toEqual([]);
  }
});

it("without the channel an offer that would be the first is refused, and the doctor says so", async () => {
  const rules = await documentedRules("orders");
  const url = await newUser(rules.filter((rule) => !rule.startsWith("&")));
  const line = newLineThatMayFail({ redis: url, transfer: false });
  const queue = line.getDelayedQueue("orders");
  const refused = await queue.offer(1, HOUR).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(OfferError);
  expect(refused).toMatchObject({ effect: "none" });
  await newLine({ redis: server.url, transfer: false }).getDelayedQueue("orders").offer(0, 1000);
  await queue.offer(2, HOUR);
  const [access] = (await diagnosis({ redis: url })).filter(({ check }) => check === "access");
  expect(access?.level).toBe("error");
  expect(access?.why).toContain("refuses each offer whose message would be the first");
});

it("without the keys of the partitions a plain queue works, its tools do not, and the doctor says so", async () => {
  const rules = await documentedRules("orders");
  const url = await newUser(rules.filter((rule) => !rule.includes("{orders/")));
  const line = newLineThatMayFail({ redis: url, codec: "string" });
  await line.getDelayedQueue("orders").offer("a", 0);
  expect(await line.getBlockingQueue("orders").take()).toBe("a");
  await line.getDelayedQueue("orders").offer("b", HOUR);
  await eventually(async () => (await line.getDelayedQueue("orders").size()) === 1);
  const { code, stderr } = await cli(["stats", "orders"], { url });
  expect([code, stderr]).toEqual([3, expect.stringContaining("NOPERM") as string]);
  const findings = await diagnosis({ redis: url });
  expect(inShort(findings)).toContain("warning access orders");
  expect(findings.find(({ check }) => check === "access")?.why).toContain("the command line");
});

/** What the doctor says of a client's rights. */
async function accessOf(redis: string) {
  return (await diagnosis({ redis })).filter(({ check }) => check === "access");
}

it.each([
  ["ordinary", {}],
  ["partitioned", { partitions: 2 }],
])(
  "says that handlers hear late of a revoke where the user of an %s queue lacks its channel",
  async (_, options) => {
    const rules = await documentedRules("orders");
    const [url, allowed] = [
      await newUser(rules.filter((rule) => !rule.startsWith("&delayline_notices"))),
      await newUser(rules),
    ];
    const queue = newLine({ redis: server.url }).getReliableQueue("orders", options);
    await queue.offer(1, HOUR);
    const [late, ...others] = await accessOf(url);
    expect(others).toEqual([]);
    expect(late).toMatchObject({ level: "warning", queue: "orders" });
    expect(late?.what).toContain("channel for what was revoked");
    expect(late?.what).toContain("&delayline_notices:{orders}");
    expect(late?.why).toContain("hears of it seconds later");
    expect(late?.repair).toContain("&delayline_notices:{orders}");
    expect(await accessOf(allowed)).toEqual([]);
  },
);
