import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster, Redis } from "ioredis";
import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { diagnose } from "../../../src/tools/doctor/diagnose.ts";
import { newLine } from "../../helpers/delayline.ts";
import { diagnosis, inShort } from "../../helpers/diagnosis.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { useSoundServer } from "../../helpers/sound-server.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

// Each test breaks one thing on a sound server, and expects that finding alone.

const server = useSoundServer();

afterEach(() => {
  vi.useRealTimers();
});

/** Changes settings for the length of a test. */
async function set(settings: Record<string, string>): Promise<void> {
  for (const [name, value] of Object.entries(settings)) {
    const [, before = ""] = await server.admin.config("GET", name);
    await server.admin.config("SET", name, value);
    undo.push(() => server.admin.config("SET", name, before));
  }
}

const undo: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const one of undo.splice(0).toReversed()) await one();
});

it("finds nothing wrong with a sound server and consumed queues of all kinds", async () => {
  const line = newLine({ redis: server.url });
  const plain = line.getDelayedQueue<number>("plain");
  const reliable = line.getReliableQueue<number>("reliable");
  const parted = line.getReliableQueue<number>("parted", { partitions: 2 });
  const handled: number[] = [];
  line.getBlockingQueue<number>("plain").subscribe((n) => void handled.push(n));
  reliable.subscribe((n) => void handled.push(n));
  parted.subscribe((n) => void handled.push(n));
  // Redis 7.0 does not list a consumer that has never been given a message.
  line.getReliableQueue<number>("idle").subscribe(() => {});
  await line.getReliableQueue<number>("idle").offer(1, 600_000);
  for (const queue of [plain, reliable, parted]) {
    await queue.offer(1, 0);
    await queue.offer(2, 600_000, { key: "two" });
  }
  await eventually(() => handled.length === 3);
  await eventually(async () => (await parted.stats()).inFlight === 0);
  expect(await diagnosis({ redis: server.url })).toEqual([]);
});

it.each<[string, Record<string, string>, string[]]>([
  ["nothing on disk", { appendonly: "no", save: "" }, ["error persistence"]],
  ["snapshots only", { appendonly: "no", save: "3600 1" }, ["warning persistence"]],
  ["appendfsync no", { appendfsync: "no" }, ["warning persistence"]],
  ["eviction of any key", { "maxmemory-policy": "allkeys-lru" }, ["error eviction"]],
  ["eviction of keys that expire", { "maxmemory-policy": "volatile-ttl" }, ["warning eviction"]],
  ["a short timeout", { timeout: "5" }, ["warning timeout"]],
  ["no keep-alive", { "tcp-keepalive": "0" }, ["warning tcp-keepalive"]],
  [
    "a tiny buffer for wake-ups",
    { "client-output-buffer-limit": "pubsub 1000 0 0" },
    ["warning output-buffer"],
  ],
  ["too few replicas", { "min-replicas-to-write": "1" }, ["error replication"]],
])("reports %s", async (_, settings, expected) => {
  await set(settings);
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(expected);
  expect(findings[0]?.repair).toContain(`-p ${server.port} CONFIG SET ${Object.keys(settings)[0]}`);
});

it("names a server behind a socket by its path", async () => {
  const path = join(tmpdir(), `${uniqueName()}.sock`);
  const args = ["--unixsocket", path, "--appendfsync", "no"];
  await startOwnServer({ appendOnly: true, args });
  const redis = new Redis(path);
  onTestFinished(() => redis.disconnect());
  const [finding] = await diagnosis({ redis });
  expect(finding?.repair).toContain(`\`redis-cli -s ${path} CONFIG SET appendfsync everysec\``);
});

it("reports memory that is nearly full", async () => {
  const used = Number(/used_memory:(\d+)/.exec(await server.admin.info("memory"))?.[1]);
  await set({ maxmemory: String(Math.ceil(used * 1.25)) });
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning memory"]);
  expect(findings[0]?.what).toMatch(/uses [\d.]+ MB of maxmemory [\d.]+ MB, \d\d %/);
});

it("reports that there is hardly room for more connections", async () => {
  for (let i = 0; i < 20; i++) await newRedis(server.url).ping();
  await set({ maxclients: "25" });
  expect(inShort(await diagnosis({ redis: server.url }))).toEqual(["warning maxclients"]);
});

it("reports a replica that was given as master, and that it has lost its master", async () => {
  const master = await startOwnServer({ args: ["--repl-diskless-sync-delay", "0"] });
  const replica = await startOwnServer({ appendOnly: true });
  await newRedis(replica.url).replicaof("127.0.0.1", master.port);
  const linked = (status: string) =>
    eventually(async () => (await newRedis(replica.url).info("replication")).includes(status));
  await linked("master_link_status:up");
  const findings = await diagnosis({ redis: replica.url });
  expect(inShort(findings)).toEqual(["error replication"]);
  expect(findings[0]?.what).toContain(`is a replica of 127.0.0.1:${master.port}`);
  // The master has a replica, and would go on without it.
  expect(inShort(await diagnosis({ redis: master.url }))).toContain("notice replication");

  await master.kill();
  await linked("master_link_status:down");
  expect(inShort(await diagnosis({ redis: replica.url }))).toEqual([
    "error replication",
    "warning replication",
  ]);
});

it("reports a wrong clock", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 600_000 });
  const findings = await diagnosis({ redis: server.url });
  expect(inShort(findings)).toEqual(["warning clock"]);
  expect(findings[0]?.what).toMatch(/is (10|9) min ahead of the clock of this machine/);
});

it("reports a distant server", async () => {
  const proxy = await startProxy(server.url);
  proxy.delay.request = 25;
  expect(inShort(await diagnosis({ redis: proxy.url }))).toEqual(["warning latency"]);
});

it("reports a wrong password at once", async () => {
  const url = new URL(server.url);
  url.username = "default";
  url.password = "wrong";
  await server.admin.call("ACL", "SETUSER", "default", ">right", "resetpass", ">right");
  undo.push(() => server.admin.call("ACL", "SETUSER", "default", "nopass"));
  const findings = await diagnosis({ redis: url.href });
  expect(inShort(findings)).toEqual(["error usable"]);
  expect(findings[0]?.what).toContain("rejects the user name or the password (WRONGPASS)");
  expect(JSON.stringify(findings)).not.toContain("wrong");
});

it("reports a database that does not exist, and checks no queue in another one", async () => {
  await newLine({ redis: server.url, transfer: false }).getDelayedQueue("orders").offer(1, 60_000);
  const findings = await diagnosis({ redis: `${server.url}/99`, queues: ["orders"] });
  expect(inShort(findings)).toEqual(["error database"]);
  expect(findings[0]?.what).toContain("does not have the database");
  expect(inShort(await diagnosis({ redis: `${server.url}/1`, queues: ["orders"] }))).toEqual([
    "error no-queue orders",
  ]);
  const mayNot = new URL("/1", await newUser("-select"));
  expect(inShort(await diagnosis({ redis: mayNot.href }))).toContain("error database");
});

it("reports that scripts are disabled", async () => {
  const own = await startOwnServer({ appendOnly: true, args: ["--rename-command", "EVALSHA", ""] });
  const findings = await diagnosis({ redis: own.url });
  expect(inShort(findings)).toEqual(["error scripts"]);
  expect(findings[0]?.what).toContain("does not know evalsha");
});

it("explains that CLIENT and CONFIG are renamed", async () => {
  const renamed = ["CLIENT", "CONFIG"].flatMap((name) => ["--rename-command", name, `MY${name}`]);
  const own = await startOwnServer({ appendOnly: true, args: renamed });
  const findings = await diagnosis({ redis: own.url });
  const access = findings.filter(({ check }) => check === "access");
  expect(access.map(({ level }) => level)).toEqual(["notice", "error"]);
  expect(access[1]?.what).toContain("does not know client|id");
  expect(access[1]?.why).toContain("still offered and moved");
  const config = findings.find(({ check }) => check === "config");
  expect(config?.repair).not.toContain("+config|get");
});

it("repairs without CONFIG where there is none", async () => {
  const settings = ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru", "--timeout", "5"];
  const own = await startOwnServer({ args: [...settings, "--rename-command", "CONFIG", ""] });
  const findings = await diagnosis({ redis: own.url });
  const checks = findings.map(({ check }) => check);
  expect(checks).toEqual(expect.arrayContaining(["config", "persistence", "eviction"]));
  expect(
    findings.filter(({ repair }) => /CONFIG (SET|REWRITE|GET)|redis\.conf/.test(repair)),
  ).toEqual([]);
  const eviction = findings.find(({ check }) => check === "eviction");
  expect(eviction?.repair).toContain(
    'set "maxmemory-policy noeviction" where your provider keeps its settings (Amazon: the parameter group',
  );
});

/** Makes a user for one test; `rules` restrict what the user may do. */
async function newUser(...rules: string[]): Promise<string> {
  const user = uniqueName("user");
  await server.admin.call("ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all", ...rules);
  undo.push(() => server.admin.call("ACL", "DELUSER", user));
  const url = new URL(server.url);
  url.username = user;
  url.password = "secret";
  return url.href;
}

it.each([
  ["by ACL DRYRUN", []],
  ["by trying, where that is not allowed", ["-acl|dryrun", "-multi"]],
])("reports commands that the user may not run: %s", async (_, rules) => {
  const redis = await newUser("-zadd", "-rpush", "-publish", "-xack", "-client|kill", ...rules);
  const findings = await diagnosis({ redis });
  expect(inShort(findings)).toEqual(["error access", "notice access", "notice access"]);
  const [all, reliable, exclusive] = findings;
  expect(all?.what).toContain("may not run zadd, rpush, publish on");
  expect(all?.repair).toContain("+zadd +rpush +publish");
  expect(reliable?.what).toContain("may not run xack on");
  expect(exclusive?.repair).toContain("'+client|kill'");
  expect(await server.admin.dbsize()).toBe(0);
});

it("reports keys and channels that the user may not use", async () => {
  const line = newLine({ redis: server.url });
  await line.getDelayedQueue("orders").offer(1, 600_000);
  const deaf = await newUser("resetchannels");
  const findings = await diagnosis({ redis: deaf });
  expect(inShort(findings)).toEqual(["error access orders"]);
  expect(findings[0]?.why).toContain("refuses each offer whose message would be the first");
  expect(findings[0]?.repair).toContain("'&redisson_delay_queue_channel:{orders}'");
  const blind = await newUser("resetkeys", "~orders", "~redisson*:{orders}", "~{orders/*}");
  expect(inShort(await diagnosis({ redis: blind }))).toEqual([
    "error access orders",
    "warning access orders",
  ]);
});

it("reports what it could not examine, and goes on", async () => {
  const redis = await newUser("-config", "-client|list", "-pubsub", "-scan", "-acl");
  expect(inShort(await diagnosis({ redis }))).toEqual([
    "notice config",
    "notice clients",
    "notice clients",
    "notice queues",
    "notice access",
  ]);
});

it("reports slots that no node serves, and a Cluster that is treated as a single server", async () => {
  const args = ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"];
  const node = await startOwnServer({ appendOnly: true, args });
  const redis = newRedis(node.url);
  await redis.call("CLUSTER", "ADDSLOTSRANGE", 0, 9999);
  // A Cluster client cannot connect to such a node. The doctor asks it directly.
  const closed = newCluster(node.port);
  const findings = await diagnosis({ redis: closed });
  expect(inShort(findings)).toEqual(["error reachable", "error cluster", "notice cluster"]);
  expect(findings[1]?.what).toContain("6384 slots belong to no node");
  expect(findings[1]?.why).toContain("all queues stand still");

  await redis.config("SET", "cluster-require-full-coverage", "no");
  await redis.call("CLUSTER", "DELSLOTS", 9999);
  await eventually(async () => (await redis.cluster("INFO")).includes("cluster_state:ok"));
  const open = await diagnosis({ redis: newCluster(node.port) });
  expect(inShort(open)).toEqual(["error cluster", "notice cluster"]);
  expect(open[0]?.why).toContain("partitions in these slots stand still");

  expect(inShort(await diagnosis({ redis: node.url }))).toContain("error cluster");
});

function newCluster(port: number): Cluster {
  const cluster = new Cluster([{ host: "127.0.0.1", port }], { slotsRefreshInterval: 2000 });
  cluster.on("error", () => {});
  onTestFinished(() => cluster.disconnect());
  return cluster;
}

it("does not make Node warn of too many listeners on its signal", async () => {
  const name = uniqueName("signalled");
  await newLine({ redis: server.url, transfer: false }).getBlockingQueue(name).put("ready");
  const warnings: Error[] = [];
  const collectWarning = (warning: Error) => warnings.push(warning);
  process.on("warning", collectWarning);
  onTestFinished(() => void process.off("warning", collectWarning));
  await diagnosis({ redis: server.url, queues: [name], signal: new AbortController().signal });
  expect(warnings.map((warning) => warning.name)).not.toContain("MaxListenersExceededWarning");
});

it("ends when it is aborted", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  controller.abort(reason);
  await expect(diagnosis({ redis: server.url, signal: controller.signal })).rejects.toBe(reason);
  await expect(diagnosis({ redis: server.url, queues: ["a}b"] })).rejects.toThrow(TypeError);
  const doctor = diagnose({ redis: server.url });
  await doctor.return();
});
