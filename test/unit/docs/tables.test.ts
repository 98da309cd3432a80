import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { PLACES } from "../../../src/nouns/places.ts";
import { KEYS, queueKeys } from "../../../src/queue/keys.ts";
import { LAWS } from "../../../src/tools/view/health.ts";
import { DEFAULTS } from "../../../src/queue/options.ts";
import { RELIABLE_DEFAULTS } from "../../../src/handles/reliable-options.ts";
import { found, mutantsPage, PATH as MUTANTS_PAGE } from "../../../scripts/docs-mutants.ts";
import { MUTANTS } from "../../simulation/mutants/table.ts";
import { pageWithTables, TABLES } from "../../../scripts/docs-tables.ts";
import { optionsPage, SECTIONS } from "../../../scripts/docs-options.ts";
import { readPage, ROOT, tableUnder, wordsIn } from "./pages.ts";

// Tables that repeat the code. Each is compared with the code in both directions.

const ERRORS = readPage("docs/guide/errors.md");
const SETTING_UP = readPage("docs/operations/setting-up.md");
const DEPLOYING = readPage("docs/operations/deploying.md");

describe("options", () => {
  test("the page is up to date: `npm run docs` writes it from the docstrings", async () => {
    expect(readPage("docs/guide/options.md").text).toBe(await optionsPage());
  });

  test("the page has every type of options that is exported", () => {
    const exported = sourceOf("src/index.ts").match(/\b\w+Options\b/g) ?? [];
    const types = SECTIONS.map(({ type }) => type as string);
    // The union of what `retry` may be, what ioredis takes, and a sum of others.
    const others = ["RetryOptions", "RedisConnectionOptions", "ReliableQueueOptions"];
    expect(exported.filter((name) => !types.includes(name) && !others.includes(name))).toEqual([]);
  });

  test.each([
    ["A client", "A queue", DEFAULTS],
    ["A reliable queue", "A definition", { ...RELIABLE_DEFAULTS, exclusive: false, strict: false }],
  ])("%s: the docstrings tell the defaults", (heading, more, defaults) => {
    const page = readPage("docs/guide/options.md");
    const rows = [...tableUnder(page, heading), ...tableUnder(page, more)];
    const told = new Map(
      rows.map(([name, value]) => [wordsIn(name)[0], value?.replaceAll("`", "")]),
    );
    for (const [name, value] of Object.entries(defaults)) {
      expect([name, told.get(name)?.replace(/ \(.*\)$/, "")]).toEqual([name, shown(value)]);
    }
  });
});

test("errors: every code, with its class", () => {
  const source = sourceOf("src/errors.ts");
  const union = /export type ErrorCode =(.*?);/s.exec(source)?.[1] ?? "";
  const codes = Array.from(union.matchAll(/"([A-Z_]+)"/g), ([, code = ""]) => code);
  expect(codes.length).toBeGreaterThan(8);
  const rows = tableUnder(ERRORS, "Codes").map(([code, name]) => [
    wordsIn(code)[0],
    wordsIn(name)[0],
  ]);
  expect(new Set(rows.map(([code]) => code))).toEqual(new Set(codes));
  const classes = Array.from(source.matchAll(/^export class (\w+)/gm), ([, name = ""]) => name);
  const withCode = classes.filter((name) => name !== "DelaylineError");
  expect(new Set(rows.map(([, name]) => name))).toEqual(new Set(withCode));
});

test("testing: every code of startRedis", () => {
  const source = sourceOf("src/adapters/testing/find-server.ts");
  const union = /export type RedisStartErrorCode =(.*?);/s.exec(source)?.[1] ?? "";
  const codes = Array.from(union.matchAll(/"([A-Z_]+)"/g), ([, code = ""]) => code);
  const rows = tableUnder(readPage("docs/guide/testing.md"), "When there is no Redis");
  expect(new Set(rows.flatMap(([code]) => wordsIn(code)))).toEqual(new Set(codes));
});

test.each(Object.keys(TABLES))(
  "%s: its tables are up to date: `npm run docs` writes them",
  async (path) => {
    expect(readPage(path).text).toBe(await pageWithTables(path));
  },
);

test("mutants: the page is up to date: `npm run docs` writes it", async () => {
  expect(readPage(MUTANTS_PAGE).text).toBe(await mutantsPage());
});

test("mutants: what found them is noted of mutants that there are", () => {
  const names = new Set(MUTANTS.map(({ name }) => name));
  expect(Object.keys(found()).filter((name) => !names.has(name))).toEqual([]);
});

test("internals: every key has a row", () => {
  expect(tableUnder(readPage("docs/project/internals.md"), "Keys")).toHaveLength(
    Object.keys(KEYS).length,
  );
});

test("internals: the keys of every place are keys of a queue", () => {
  const keys = Object.values(PLACES).flatMap((place): readonly string[] => place.keys);
  expect(keys.filter((key) => !(key in KEYS))).toEqual([]);
});

test("deploying: MIGRATE and UNLINK name every key of a queue", () => {
  const list = /^keys=\((.*?)\)$/ms.exec(DEPLOYING.text)?.[1];
  const named = list?.split(/[\s']+/).filter((word) => word !== "");
  const { channel, notices, ...keys } = queueKeys("orders");
  expect([channel, notices]).toEqual([expect.stringContaining("channel"), expect.any(String)]);
  expect(new Set(named)).toEqual(new Set<string>(Object.values(keys)));
  for (const command of ["MIGRATE", "UNLINK"]) {
    expect(DEPLOYING.text).toMatch(
      new RegExp(`^redis-cli ${command} .*"\\$\\{keys\\[@\\]\\}"$`, "m"),
    );
  }
});

test("observing: every problem of a queue, and its level", () => {
  const documented = tableUnder(
    readPage("docs/guide/observing.md"),
    "When a queue needs attention",
  ).map(([problem, , level]) => [wordsIn(problem)[0], level]);
  expect(documented).toEqual(Object.entries(LAWS).map(([problem, { level }]) => [problem, level]));
});

describe("access rules", () => {
  const block = /## Access rules.*?```\n(.*?)```/s.exec(SETTING_UP.text)?.[1] ?? "";
  const granted = block.split(/\s+/).filter((word) => word.startsWith("+"));

  test("hold every command without which the fault tests have tried to live", () => {
    const source = sourceOf("test/fault/acl.test.ts");
    const lists = Array.from(source.matchAll(/RULES = `(.*?)`/gs), ([, list = ""]) => list);
    const tried = lists.join(" ").trim().split(/\s+/);
    expect(tried.length).toBeGreaterThan(30);
    expect(tried.filter((name) => !granted.includes(`+${name}`))).toEqual([]);
  });

  test("have a table that says what each command is for", () => {
    const explained = tableUnder(SETTING_UP, "Access rules").flatMap(([commands]) =>
      wordsIn(commands),
    );
    expect(explained.map((name) => `+${name}`).toSorted()).toEqual(granted.toSorted());
  });
});

/** A default as the pages write it: 10,000 and `"none"`. */
function shown(value: string | number | boolean): string {
  return typeof value === "number" ? value.toLocaleString("en-US") : JSON.stringify(value);
}

function sourceOf(path: string): string {
  return readFileSync(ROOT + path, "utf8");
}

describe("observing", () => {
  test.each([
    ["docs/guide/observing.md", "What is in a queue", "QueueNumbers"],
    ["docs/guide/observing.md", "What this process has done", "QueueCounters"],
    ["docs/guide/opentelemetry.md", "OpenTelemetry", "InstrumentOptions"],
  ])("%s, %s: all of %s", (path, heading, type) => {
    const documented = tableUnder(readPage(path), heading).flatMap(
      ([name]) => wordsIn(name)[0] ?? [],
    );
    expect(documented.toSorted()).toEqual(membersOf(type));
  });
});

/** The names of the members of an interface and of its base interfaces, wherever they are in `src/`. */
function membersOf(type: string): string[] {
  const declaration = new RegExp(`^(?:export )?interface ${type}\\b(.*?)\\{\\n(.*?)^\\}`, "ms");
  for (const file of readdirSync(`${ROOT}src`, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".ts")) continue;
    const [, heritage = "", body] = declaration.exec(sourceOf(`src/${file}`)) ?? [];
    if (body === undefined) continue;
    const own = Array.from(body.matchAll(/^ {2}readonly (\w+)\??:/gm), ([, name = ""]) => name);
    const bases = /extends (.*)/s.exec(heritage)?.[1]?.match(/\b[A-Z]\w+/g) ?? [];
    return [...new Set([...own, ...bases.flatMap(membersOf)])].toSorted();
  }
  throw new Error(`there is no interface ${type} in src/`);
}
