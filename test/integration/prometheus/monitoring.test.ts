import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Registry } from "prom-client";
import { beforeAll, describe, expect, onTestFinished, test, type TestContext } from "vitest";
import { parse } from "yaml";
import { Delayline } from "../../../src/index.ts";
import {
  collectMetrics,
  type CollectMetricsOptions,
} from "../../../src/adapters/prometheus/index.ts";
import { readPage, tableUnder, wordsIn } from "../../unit/docs/pages.ts";
import { newLine } from "../../helpers/delayline.ts";
import { redisUrl, uniqueName } from "../../helpers/redis.ts";

// The alert rules and the dashboard that users start with.

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<"summary" | "description" | "runbook_url", string>> & {
    readonly dashboard_url?: string;
  };
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly description: string;
  readonly gridPos: Readonly<Record<"x" | "y" | "w" | "h", number>>;
  readonly targets: readonly { readonly expr: string }[];
}

const example = (file: string) => new URL(`../../../examples/monitoring/${file}`, import.meta.url);
const ALERTS = await readFile(example("alerts.yml"), "utf8");
const [{ rules }] = (parse(ALERTS) as { groups: [{ rules: Rule[] }] }).groups;
const DASHBOARD = JSON.parse(await readFile(example("grafana-dashboard.json"), "utf8")) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly definition?: string }[] };
};
const queries = DASHBOARD.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

/** The names of the exported series. */
let series: Set<string>;

beforeAll(async () => {
  await using line = new Delayline({ redis: redisUrl() });
  const registry = new Registry();
  await using _ = collectMetrics(line, { registry, queues: [], dueWithin: [300_000] });
  const types = (await registry.metrics()).matchAll(/^# TYPE (\S+) (\S+)$/gm);
  const names = Array.from(types, ([, name = "", type]) =>
    type === "histogram" ? ["_bucket", "_sum", "_count"].map((suffix) => name + suffix) : [name],
  );
  series = new Set(names.flat());
});

function metricsIn(text: string): string[] {
  return text.match(/\bdelayline_\w+/g) ?? [];
}

test("the rules and the dashboard name only exported series", () => {
  const known = [...rules.map(({ expr }) => expr), ...queries].flatMap(metricsIn);
  expect(known.length).toBeGreaterThan(40);
  expect(known.filter((name) => !series.has(name))).toEqual([]);
  for (const { definition = "" } of DASHBOARD.templating.list) {
    expect(metricsIn(definition).filter((name) => !series.has(name))).toEqual([]);
  }
});

test("the dashboard shows every exported series except the sums of histograms", () => {
  const shown = queries.flatMap(metricsIn);
  const missing = [...series].filter((name) => !shown.includes(name));
  expect(missing.filter((name) => !/_seconds_(sum|count)$/.test(name))).toEqual([]);
});

test("the guide names every metric, every alert and every option", () => {
  const page = readPage("docs/guide/prometheus.md");
  const base = [...series].map((name) => name.replace(/(_seconds)_(bucket|sum|count)$/, "$1"));
  expect(new Set(page.text.match(/(?<=`)delayline_[a-z_]+(?=`)/g))).toEqual(new Set(base));
  const alerts = tableUnder(page, "Alerts and a dashboard");
  expect(alerts.map(([name, severity]) => [wordsIn(name)[0], severity])).toEqual(
    rules.map(({ alert, labels }) => [alert, labels.severity]),
  );
  const options = tableUnder(page, "Metrics for Prometheus").map(([name]) => wordsIn(name)[0]);
  const known: Record<keyof CollectMetricsOptions, true> = {
    registry: true,
    queues: true,
    dueWithin: true,
    prefix: true,
    timeout: true,
    onError: true,
  };
  expect(options).toEqual(Object.keys(known));
});

test.each(rules)("$alert says which queue, what it means, and what to do first", (rule) => {
  const { summary, description } = rule.annotations;
  expect(["critical", "warning"]).toContain(rule.labels.severity);
  expect(summary).toMatch(/queue/i);
  // Without numbers nobody knows which.
  if (rule.alert !== "DelaylineNoMetrics") expect(description).toContain("$labels.queue");
  expect(description).toMatch(/^First: .*$/m);
  expect(description).toMatch(/npx delayline \w+/);
  // It has to be readable on a telephone.
  expect(description.split("\n").length).toBeLessThanOrEqual(6);
});

test.each(rules)("$alert leads to its section of the docs, and to its queue", async (rule) => {
  const { runbook_url: runbook, dashboard_url: dashboard } = rule.annotations;
  const [, page = "", anchor = ""] = /\/blob\/main\/(docs\/\S+\.md)#(\S+)$/.exec(runbook) ?? [];
  const text = await readFile(new URL(`../../../${page}`, import.meta.url), "utf8");
  const anchors = Array.from(text.matchAll(/^#+ (.*)$/gm), ([, heading = ""]) =>
    heading.toLowerCase().replaceAll(" ", "-"),
  );
  expect(anchors).toContain(anchor);
  // Without numbers nobody knows which queue.
  if (rule.alert === "DelaylineNoMetrics") expect(dashboard).toBeUndefined();
  else expect(dashboard).toMatch(/\/#\/\?q=\{\{ \$labels\.queue \| urlquery \}\}$/);
});

test("panels have their own numbers and places, and say what they show", () => {
  const { panels } = DASHBOARD;
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(panels.filter(({ description, gridPos: { x, w } }) => !description || x + w > 24)).toEqual(
    [],
  );
});

describe("with promtool, if it is installed", () => {
  test("the rules are legal", async (context) => {
    const checked = await promtool(context, [
      "check",
      "rules",
      fileURLToPath(example("alerts.yml")),
    ]);
    expect(checked).toContain(`SUCCESS: ${rules.length} rules found`);
  });

  test("each alert is raised when it should be, with its text", async (context) => {
    const cases = fileURLToPath(new URL("alerts.test.yml", import.meta.url));
    const untested = await readFile(cases, "utf8").then((text) =>
      rules.filter(({ alert }) => !text.includes(`alertname: ${alert}\n`)),
    );
    expect(untested).toEqual([]);
    expect(await promtool(context, ["test", "rules", cases])).toContain("SUCCESS");
  });

  test("the dashboard's queries are legal", async (context) => {
    const recorded = queries.map((expr, i) => ({
      record: `query:${i}`,
      expr: expr.replaceAll("$queue", ".*").replaceAll("$__rate_interval", "5m"),
    }));
    const file = await fileWith(
      "queries.yml",
      JSON.stringify({ groups: [{ name: "dashboard", rules: recorded }] }),
    );
    expect(await promtool(context, ["check", "rules", file])).toContain("SUCCESS");
  });

  test("the exported text meets Prometheus's rules", async (context) => {
    const line = newLine();
    const { name } = line.getReliableQueue(uniqueName('queue "\\\n'));
    const registry = new Registry();
    await using _ = collectMetrics(line, { registry, queues: [name] });
    expect(await promtool(context, ["check", "metrics"], await registry.metrics())).toBe("");
  });
});

async function fileWith(name: string, text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "delayline-promtool-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, name);
  await writeFile(path, text);
  return path;
}

/** Runs promtool. If it is not installed, says so and skips the test. */
async function promtool({ skip }: TestContext, args: string[], input = ""): Promise<string> {
  const running = promisify(execFile)("promtool", args);
  running.child.stdin?.on("error", () => {}).end(input);
  try {
    return (await running).stdout;
  } catch (error) {
    const { code, stdout = "", stderr = "" } = error as Record<string, string>;
    if (code === "ENOENT") skip("promtool was not found (Debian's package prometheus has it)");
    throw new Error(`promtool ${args.join(" ")} failed:\n${stdout}${stderr}`, { cause: error });
  }
}
