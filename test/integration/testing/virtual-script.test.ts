import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { virtualScript } from "../../../src/adapters/testing/clock/virtual-script.ts";
import { stats } from "../../../src/lua/queue/stats.ts";
import { consumers } from "../../../src/lua/reliable/consumers.ts";
import { asArray } from "../../../src/lua/reply.ts";
import { defineScript, run, type Script } from "../../../src/lua/script.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { REAL, replaceRuntime } from "../../../src/time/runtime.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { LUA, scriptsByFile } from "../../helpers/scripts.ts";
import { onTestFinished } from "vitest";

type AnyScript = Script<string, string, unknown, string>;

/** All scripts; of a family, each of its forms. */
async function allScripts(): Promise<AnyScript[]> {
  const found: AnyScript[] = [];
  const add = (value: object) => {
    if ("sha" in value) found.push(value as AnyScript);
    else Object.values(value).forEach(add);
  };
  for (const [file, names] of await scriptsByFile()) {
    const exported = (await import(pathToFileURL(LUA + file).href)) as Record<string, object>;
    for (const name of names) add(exported[name] as object);
  }
  return found;
}

/** What has a time in Redis that the virtual form would leave real. Reading a history delivers nothing new. */
const REAL_TIME =
  /"(?:MINIDLE|PX|PEXPIRE|P?EXPIREAT|GETEX|XREAD|XREADGROUP(?!".*"0"\))|XAUTOCLAIM|XSETID|OBJECT)"/;

test("Redis knows the virtual form of every script, and none has a time that this form does not know", async () => {
  const redis = newRedis();
  const scripts = await allScripts();
  expect(scripts.length).toBeGreaterThan(40);
  for (const script of scripts) {
    const { lua, sha } = virtualScript(script);
    expect(await redis.script("LOAD", lua)).toBe(sha);
    expect(script.lua, script.name).not.toMatch(REAL_TIME);
  }
});

/** From now on, scripts run at this virtual instant, after these steps. */
function turnTo(now: number, ...steps: readonly (readonly [real: number, virtual: number])[]) {
  const words = [steps.map((step) => step.join(":")).join(","), String(now * 1000)];
  const script = (_: object, it: object) => ({ ...virtualScript(it as AnyScript), words });
  replaceRuntime({ ...REAL, server: { script } });
  onTestFinished(() => replaceRuntime());
}

/** Milliseconds on Redis's clock, in a millisecond that has just begun. */
async function realNow(redis: ReturnType<typeof newRedis>): Promise<number> {
  const read = async () => {
    const [seconds, micros] = await redis.time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  };
  const before = await read();
  for (;;) {
    const now = await read();
    if (now > before + 1) return now;
  }
}

test("idle times are virtual: of entries in flight and of consumers", async () => {
  const redis = newRedis();
  const keys = queueKeys(uniqueName("virtual"));
  const begin = await realNow(redis);
  await redis.xgroup("CREATE", keys.stream, "g", "$", "MKSTREAM");
  await redis.xadd(keys.stream, "*", "p", "1");
  await redis.xreadgroup("GROUP", "g", "early", "COUNT", 1, "STREAMS", keys.stream, ">");
  const step = await realNow(redis);
  await redis.xadd(keys.stream, "*", "p", "2");
  await redis.xreadgroup("GROUP", "g", "late", "COUNT", 1, "STREAMS", keys.stream, ">");
  await realNow(redis);

  const start = 1_800_000_000_000;
  turnTo(start + 3_600_000, [step, start + 3_600_000], [begin, start]);
  const rows = await run(redis, consumers, keys, { group: "g" });
  expect(rows).toEqual([
    { name: "early", inFlight: 1, idle: 3_600_000 },
    { name: "late", inFlight: 1, idle: 0 },
  ]);
  const { oldestInFlightAge } = await run(redis, stats, keys, { channel: keys.channel, shares: 1 });
  expect(oldestInFlightAge).toBe(3_600_000);
});

test("a script reads the virtual instant, and its entries get ids of it", async () => {
  const redis = newRedis();
  const keys = queueKeys(uniqueName("virtual"));
  const add = defineScript({
    name: "add",
    keys: ["stream"],
    args: [],
    lua: /* lua */ `
local time = redis.call("TIME")
local first, second = redis.call("XADD", stream, "*", "p", "*"), redis.pcall("XADD", stream, "*", "p", "1")
return { time[1] .. " " .. time[2], first, second, redis.call("XADD", stream, "2000000000000-5", "p", "1") }
`,
    reply: (raw) => asArray(raw).map(String),
  });
  const now = 1_800_000_000_007;
  turnTo(now, [0, 0]);
  expect(await run(redis, add, keys, {})).toEqual([
    "1800000000 7000",
    `${now}-1`,
    `${now}-2`,
    "2000000000000-5",
  ]);
  const next = defineScript({
    ...add,
    lua: 'return { redis.call("XADD", stream, "*", "p", "1") }',
  });
  expect(await run(redis, next, keys, {})).toEqual(["2000000000000-6"]);
  const trimming = defineScript({
    ...add,
    lua: 'return { redis.call("XADD", stream, "MINID", "~", "5", "*", "p", "*") }',
  });
  const other = queueKeys(uniqueName("virtual"));
  expect(await run(redis, trimming, other, {})).toEqual([`${now}-1`]);
});
