import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis } from "../../helpers/redis.ts";
import { SCENARIOS, type AnyScript, type Scenario } from "./scenarios.ts";
import { newTrial, type Trouble } from "./trial.ts";

/*
 * Redis rolls nothing back. So for each script: what if Redis refuses one of its commands (an ACL), or to touch one of
 * its keys (WRONGTYPE), or its first write (OOM), or two of these?
 *
 * - The reply is an error: then nothing has changed. Or the scenario says why a part may be done; then a second run with
 *   all rights does the rest, and ends where one undisturbed run ends: nothing is lost, and nothing is there twice.
 * - The reply is no error: then it says what was done.
 */

/** Scenarios that one test tries. */
const AT_ONCE = 8;

/** Redis's commands by their names, in lower case, and whether they write. */
type Commands = ReadonlyMap<string, boolean>;

async function commandsOf(redis: Redis): Promise<Commands> {
  const all = (await redis.call("COMMAND")) as [name: string, arity: number, flags: string[]][];
  return new Map(all.map(([name, , flags]) => [name, flags.includes("write")]));
}

/** The commands that a script may call. Some functions that it shares with others it does not call. */
function calledBy({ lua }: AnyScript, commands: Commands): string[] {
  const words = [...lua.matchAll(/"([A-Z]+)"/g)].map(([, word = ""]) => word.toLowerCase());
  return [...new Set(words)].filter((word) => commands.has(word));
}

/** All scripts in src/lua. */
async function allScripts(): Promise<AnyScript[]> {
  const folder = fileURLToPath(new URL("../../../src/lua", import.meta.url));
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const found = new Set<AnyScript>();
  const collect = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    if ("lua" in value && "sha" in value) found.add(value as AnyScript);
    else if (Object.getPrototypeOf(value) === Object.prototype)
      for (const each of Object.values(value)) collect(each);
  };
  for (const file of files.filter((path) => path.endsWith(".ts"))) {
    const exported = (await import(join(folder, file))) as Record<string, unknown>;
    for (const each of Object.values(exported)) collect(each);
  }
  return [...found];
}

test("every script that writes has a scenario", async () => {
  const { url } = await startOwnServer();
  const commands = await commandsOf(newRedis(url));
  const names = (await allScripts())
    .filter((script) => calledBy(script, commands).some((name) => commands.get(name)))
    .map(({ name }) => name);
  expect(names).toContain("offer");
  const tried = new Set(SCENARIOS.map(({ script }) => script.name));
  expect(names.filter((name) => !tried.has(name))).toEqual([]);
});

/** One trouble each, and two: something is refused, and then a write that would take back what was done. */
function* troublesOf(scenario: Scenario, keys: readonly string[], commands: Commands) {
  const names = calledBy(scenario.script, commands);
  const denied = names.filter((name) => !scenario.unmended?.includes(name));
  const all: Trouble[] = [
    ...denied.map((what): Trouble => ({ kind: "command", what })),
    ...keys.map((what): Trouble => ({ kind: "type", what })),
    { kind: "memory", what: "full" },
  ];
  yield [];
  for (const one of all) yield [one];
  const writes = all.filter(({ kind, what }) => kind === "command" && commands.get(what));
  for (const [i, one] of writes.entries()) {
    for (const other of all) if (!writes.slice(0, i + 1).includes(other)) yield [other, one];
  }
}

/** All scenarios, some at a time: each has the time limit of a test. */
const groups = Array.from({ length: Math.ceil(SCENARIOS.length / AT_ONCE) }, (_, i) => {
  const scenarios = SCENARIOS.slice(i * AT_ONCE, (i + 1) * AT_ONCE);
  return { first: scenarios[0]?.script.name, scenarios };
});

test.for(groups)(
  "whatever Redis refuses, the reply agrees with what Redis holds: from $first on",
  async ({ scenarios }) => {
    const { url } = await startOwnServer();
    const admin = newRedis(url);
    const commands = await commandsOf(admin);
    await admin.acl("SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all");
    const limited = newRedis(url, { username: "limited", password: "secret" });
    const faults: string[] = [];
    for (const scenario of scenarios) {
      const { keys, judge } = await newTrial(url, { admin, limited }, scenario);
      for (const troubles of troublesOf(scenario, keys, commands)) {
        const fault = await judge(troubles);
        const told = troubles.map(({ kind, what }) => `${kind} ${what}`).join(" and ");
        if (fault !== undefined)
          faults.push(`${scenario.script.name} (${scenario.when ?? "first"}), ${told}: ${fault}`);
      }
    }
    expect(faults).toEqual([]);
  },
);
