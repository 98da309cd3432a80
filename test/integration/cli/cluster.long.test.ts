import { expect, test } from "vitest";
import { cli as cliOn, type CliOptions } from "../../helpers/cli.ts";
import { startCluster } from "../../helpers/cluster.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";

const HOUR = 3_600_000;

test("with --cluster every command covers all nodes, whichever is named", async () => {
  const { cluster, nodes } = await startCluster();
  const urls = nodes.map(({ url }) => url);
  // Each command names another node.
  let turn = 0;
  const cli = (argv: readonly string[], options?: CliOptions) =>
    cliOn([...argv, "--cluster"], { url: urls[turn++ % urls.length] as string, ...options });

  const line = newLine({ redis: cluster, codec: "string" });
  const reminders = line.getDelayedQueue("reminders");
  for (let i = 0; i < 9; i++) await reminders.offer(`${i}`, HOUR, { key: `order:${i}` });
  const invoices = line.getReliableQueue("invoices", { maxAttempts: 1 });
  await invoices.offer("x", 0, { key: "invoice:1" });
  await (await invoices.take()).reject("no such customer");
  const parted = line.getReliableQueue("parted", { partitions: 6 });
  await parted.offerMany(
    Array.from({ length: 30 }, (_, i) => ({ payload: `${i}`, delay: HOUR, key: `part:${i}` })),
  );
  const names = ["invoices", "parted", "reminders"];

  expect((await cli(["queues"])).stdout).toBe(`${names.join("\n")}\n`);
  const stats = await cli(["stats", "--json"]);
  expect(stats.json).toMatchObject([
    { queue: "invoices", delayed: 0, dead: 1, kind: "reliable" },
    { queue: "parted", delayed: 30, perPartition: { length: 6 } },
    { queue: "reminders", delayed: 9, dead: 0 },
  ]);
  const [due] = (await cli(["due", "--at", "30m", "--count", "1", "--json"])).json;
  expect(due).toMatchObject({ total: 39, queues: [{ queue: "parted" }, { queue: "reminders" }] });
  for (const name of ["parted", "reminders"]) {
    const listed = await cli(["list", name, "--json", "--limit", "100"]);
    expect(listed.json).toHaveLength(name === "parted" ? 30 : 9);
    expect((await cli(["search", name, "--prefix", "none"])).code).toBe(1);
  }
  expect((await cli(["search", "--prefix", "part:1", "--json"])).json).toHaveLength(11);
  expect((await cli(["get", "order:7"])).stdout).toContain('is delayed in queue "reminders"');
  expect((await cli(["get", "part:7"])).stdout).toMatch(
    /is delayed in queue "parted"[^]*partition/,
  );
  expect((await cli(["get", "invoice:1"])).stdout).toContain("no such customer");

  // The partitions are spread over all nodes.
  const { json } = await cli(["partitions", "parted", "--json"]);
  expect(new Set(json.map(({ node }) => node))).toEqual(
    new Set(nodes.map(({ port }) => `127.0.0.1:${port}`)),
  );
  expect((await cli(["cancel", "parted", "part:7", "part:8", "--yes"])).code).toBe(0);
  expect((await cli(["cancel", "reminders", "--prefix", "order:", "--yes"])).stdout).toContain("9");
  const at = ["reschedule", "parted", "part:9", "--at", "tomorrow", "09:00", "--yes"];
  expect((await cli(at)).stdout).toContain("09:00:00");
  expect((await cli(["deliver-now", "parted", "part:9", "--yes"])).code).toBe(0);
  await eventually(async () => (await parted.stats()).ready === 1);
  for (const word of ["pause", "resume"]) {
    expect((await cli([word, "parted", "--yes"])).code).toBe(0);
  }

  expect((await cli(["dead", "list", "invoices"])).stdout).toContain('"no such customer"');
  expect((await cli(["dead", "redrive", "invoices", "--yes"])).stdout).toContain("Redrove 1");
  const exported = await cli(["export", "parted"]);
  const copied = await cli(["import", "--queue", "copy", "--yes"], { input: exported.stdout });
  expect(copied.stdout).toContain('Imported 28 messages into queue "copy"');
  expect((await line.stats("copy")).perPartition).toHaveLength(6);
  expect((await cli(["get", "copy", "part:10"])).code).toBe(0);

  // Nobody consumes one queue, nobody has the copy open, and the Cluster has no replicas.
  const diagnosed = await cli(["doctor", "--json"]);
  expect(diagnosed.code).toBe(1);
  const found = diagnosed.json.map(({ level, check, queue }) => [level, check, queue].join(" "));
  expect(found.filter((one) => !one.includes("persistence"))).toEqual([
    "notice cluster ",
    "error no-consumer copy",
    "error no-consumer parted",
  ]);
}, 30_000);
