import { expect, it } from "vitest";
import { checkClocks, checkServer, checkUsable } from "../../../src/tools/doctor/checks/server.ts";
import { checkBacklog } from "../../../src/tools/doctor/checks/consumers.ts";
import { redisCli, redisCliAtKey } from "../../../src/tools/doctor/checks/finding.ts";
import { checkSchedules } from "../../../src/tools/doctor/checks/schedules.ts";
import { checkSlots } from "../../../src/tools/doctor/checks/cluster.ts";
import type { Schedule } from "../../../src/handles/schedules.ts";
import type { QueueReport } from "../../../src/tools/doctor/looks/queue-report.ts";
import type { ServerReport } from "../../../src/tools/doctor/looks/server-report.ts";

// Conditions that no server shows in a test: an old version, a full disk, another clock.

const commandLine = () => "";

const INFO = { redis_version: "7.0.15", aof_enabled: "1", role: "master" };

function report(info: Record<string, string>, more: Partial<ServerReport> = {}): ServerReport {
  return {
    address: "10.0.0.7:6379",
    user: undefined,
    tls: "",
    role: "master",
    isAskedAsCluster: false,
    info: new Map(Object.entries({ ...INFO, ...info })),
    config: new Map([["save", "3600 1"]]),
    configRefusal: undefined,
    clockOffset: 0,
    clockError: 1,
    roundTrip: 1,
    ...more,
  };
}

it.each<[string, Record<string, string>, string[]]>([
  ["nothing wrong", {}, []],
  ["Redis 6.0", { redis_version: "6.0.16" }, ["error version"]],
  ["Redis 6.2", { redis_version: "6.2.14" }, []],
  ["Redis 8", { redis_version: "8.0.1" }, []],
  ["Valkey 9.1", { engines_count: "1", engine_0: "name=LUA,module=lua,abi_version=4" }, []],
  ["Valkey without Lua", { engines_count: "0" }, ["error scripts"]],
  ["a snapshot that failed", { rdb_last_bgsave_status: "err" }, ["error persistence"]],
  ["a full disk", { aof_last_write_status: "err" }, ["error persistence"]],
  ["a rewrite that failed", { aof_last_bgrewrite_status: "err" }, ["warning persistence"]],
  [
    "a replica that lags",
    { slave0: "ip=10.0.0.8,port=6379,state=online,offset=1,lag=30" },
    ["warning replication", "notice replication"],
  ],
  ["memory that is used up", { maxmemory: "1000", used_memory: "990" }, ["error memory"]],
])("reports %s", (_, info, expected) => {
  const findings = [...checkServer(report(info), commandLine)];
  expect(findings.map(({ level, check }) => `${level} ${check}`)).toEqual(expected);
});

it.each([
  ["memory that is used up", { maxmemory: "1000", used_memory: "990" }],
  ["no append-only file", { aof_enabled: "0" }],
  ["a policy that evicts", { maxmemory: "1000", maxmemory_policy: "allkeys-lru" }],
])("repairs %s where a provider keeps its settings if CONFIG was renamed or removed", (_, info) => {
  const configRefusal = "ERR unknown command 'config', with args beginning with: 'GET' 'save' ";
  const missing = report(info, { config: undefined, configRefusal });
  const repairs = [...checkServer(missing, commandLine)].map(({ repair }) => repair);
  expect(repairs.join()).toMatch(/set ".*" where your provider keeps its settings/);
  expect(repairs.join()).not.toMatch(/CONFIG (SET|REWRITE)|redis\.conf/);
  const denied = report(info, { config: undefined, configRefusal: "NOPERM no permissions" });
  const asAdmin = [...checkServer(denied, commandLine)].map(({ repair }) => repair);
  expect(asAdmin.join()).toContain("as an administrator");
});

it.each([
  [true, 300_000, ["300,000 messages are in one slot"]],
  [true, 40_000, []],
  [false, 300_000, []],
])("names a big slot of a Cluster (%s, %i messages)", (isCluster, delayed, expected) => {
  const part = { site: { isCluster }, delayed, inList: 0, inStream: 0, retries: 0 };
  const findings = [...checkSlots({ name: "orders", parts: [part] } as unknown as QueueReport)];
  expect(findings.map(({ what }) => what.split(":")[0])).toEqual(expected);
  for (const { what } of findings) expect(what).toContain("about 4.2 s");
});

type Takers = readonly { isBlocked: boolean; idle: number }[];

/** A look at a plain queue with 17 ready messages. */
function lookAt(takers: Takers): QueueReport {
  const stats = { kind: "plain", isPaused: false, ready: 17 };
  return { name: "orders", stats, takers, strangers: 0 } as unknown as QueueReport;
}

/** What two such looks show. */
function backlogOf(...takers: Takers): string[] {
  const findings = checkBacklog(lookAt(takers), lookAt(takers));
  return Array.from(findings, ({ level, check, what }) => `${level} ${check}: ${what}`);
}

it("tells consumers of a plain queue that hang from those that are only busy, or wait", () => {
  const hung = { isBlocked: false, idle: 25_000 };
  const waiting = { isBlocked: true, idle: 25_000 };
  expect(backlogOf(hung, { ...hung, idle: 12_000 })).toEqual([
    "warning stalled: 17 messages are ready, none was taken within half a second, and no consumer has asked for any for 12 s",
  ]);
  expect(backlogOf(hung, { ...hung, idle: 1000 })).toEqual([]);
  expect(backlogOf(hung, waiting)).toEqual([]);
  expect(backlogOf()).toEqual([expect.stringContaining("error no-consumer: ")]);
});

/** What is found of schedules, of which only this is out of the ordinary. */
function findingsOf(...schedules: readonly Partial<Schedule>[]) {
  const now = Date.UTC(2026, 5, 1);
  const isLate = ({ planAt = Infinity }) => planAt < now;
  const found = {
    name: "orders",
    stats: { serverTime: now, unplanned: schedules.filter(isLate).length },
    schedules: schedules.map((one) => ({ missed: 0, droppedOverlap: 0, planAt: now + 1, ...one })),
    listeners: 1,
  };
  return [...checkSchedules(found as unknown as QueueReport, commandLine)];
}

it("names the schedules that drop runs, those that dropped most first", () => {
  const well = { name: "well" };
  const hourly = { name: "hourly", droppedOverlap: 1 };
  expect(findingsOf(well)).toEqual([]);
  const [one] = findingsOf(hourly, well);
  expect(one).toMatchObject({ level: "notice", check: "dropped-runs", queue: "orders" });
  expect(one?.what).toMatch(/^1 run of schedule "hourly" was dropped, ever, /);
  const [both] = findingsOf(hourly, { name: "hung", droppedOverlap: 18 });
  expect(both?.what).toMatch(/^19 runs of 2 schedules \("hung" 18, "hourly" 1\) were dropped, /);
});

it("tells schedules whose time to plan Redis has lost from those that nobody can plan", () => {
  const late = { name: "late", planAt: Date.UTC(2026, 4, 31) };
  const code = { ...late, name: "code", needs: "code" } as const;
  const found = findingsOf({ name: "lost", planAt: 0, needs: "code" }, late, code);
  expect(found.map(({ level, check }) => `${level} ${check}`)).toEqual(
    Array.from(found, () => "error unplanned"),
  );
  expect(found.map(({ what }) => what)).toEqual([
    'Redis has lost when to plan schedule "lost"',
    expect.stringContaining('schedule "code" should have been planned 1 d ago, and needs code'),
    expect.stringContaining('schedule "late" should have been planned 1 d ago'),
  ]);
  expect(found[0]?.why).toContain("delayline_planning");
});

it("tells a server that loads its data from one that is down", () => {
  const endpoint = { address: "10.0.0.7:6379", user: undefined, tls: "" };
  const info = new Map([
    ["loading", "1"],
    ["loading_eta_seconds", "90"],
  ]);
  const finding = checkUsable(endpoint, { info, masters: undefined }, commandLine);
  expect(finding?.what).toBe(
    "10.0.0.7:6379 is loading its data, and serves nobody until that is done (LOADING)",
  );
  expect(finding?.repair).toContain("1 min 30 s more");
  expect(
    checkUsable(endpoint, { info: new Map(), masters: undefined }, commandLine),
  ).toBeUndefined();
});

function at(clockOffset: number, clockError = 1): ServerReport {
  return report({}, { clockOffset, clockError });
}

it("compares the clocks of servers, allowing for the error of measurement", () => {
  expect([...checkClocks([at(0), at(900)])]).toEqual([]);
  expect([...checkClocks([at(0, 500), at(1900, 500)])]).toEqual([]);
  const [finding] = checkClocks([at(-60_000), at(0), at(60_000)]);
  expect(finding?.what).toContain("is 2 min ahead of the clock of");
});

it("prints commands that can be pasted into a shell", () => {
  const none = { user: undefined, tls: "" };
  expect(redisCli({ ...none, address: "::1:6379" }, "PING")).toBe(
    "`redis-cli -h ::1 -p 6379 PING`",
  );
  expect(redisCli({ ...none, address: "/run/redis.sock" }, "PING")).toBe(
    "`redis-cli -s /run/redis.sock PING`",
  );
  expect(redisCli({ address: "h:1", user: "it's", tls: " --tls" }, "PING")).toBe(
    "`redis-cli -h h -p 1 --user 'it'\\''s' --tls PING`",
  );
  const site = { ...none, address: "::1:6379", database: 2 };
  const del = (more: { isCluster: boolean; keyPrefix: string; database?: number }) =>
    redisCliAtKey({ ...site, ...more }, "DEL", "{it's}");
  expect(del({ isCluster: false, keyPrefix: "app:" })).toBe(
    "`redis-cli -h ::1 -p 6379 -n 2 DEL 'app:{it'\\''s}'`",
  );
  expect(del({ database: 0, isCluster: true, keyPrefix: "" })).toBe(
    "`redis-cli -h ::1 -p 6379 -c DEL '{it'\\''s}'`",
  );
});
