import { afterAll, beforeAll, expect, test } from "vitest";
import { COMMANDS } from "../../../src/tools/cli/commands.ts";
import { COMMON } from "../../../src/tools/cli/session/command.ts";
import { cli } from "../../helpers/cli.ts";
import { Delayline } from "../../../src/index.ts";
import { OwnServer } from "../../helpers/own-server.ts";

let server: OwnServer;

beforeAll(async () => {
  server = await OwnServer.start();
  await using line = new Delayline({ redis: server.url, transfer: false });
  for (const name of ["orders", "outbox:mail", "two words"]) {
    await line.getDelayedQueue(name).offer("x", 3_600_000);
  }
  const { schedules } = line.getDelayedQueue("orders");
  for (const name of ["nightly", "night shift", "weekly"])
    await schedules.upsert(name, { every: 3_600_000, payload: "run" });
});

afterAll(() => server.stop());

/** The candidates for the last of these words. */
async function complete(...words: readonly string[]): Promise<string[]> {
  const { code, stdout, stderr } = await cli(["completion", "words", "--", ...words], {
    url: server.url,
  });
  expect([code, stderr]).toEqual([0, ""]);
  return stdout.split("\n").flatMap((line) => line.split("\t")[0] || []);
}

test("every command and every option of each completes", async () => {
  expect(await complete("")).toEqual([...Object.keys(COMMANDS), "help"]);
  for (const [name, entry] of Object.entries(COMMANDS)) {
    const { options } = await entry.load();
    const all = [...Object.keys(COMMON), ...Object.keys(options)].map((one) => `--${one}`);
    expect(new Set(await complete(name, "-")), name).toEqual(new Set(all));
  }
});

test("what completes is what may stand there", async () => {
  expect(await complete("de")).toEqual(["deliver-now", "dead", "demo"]);
  expect(await complete("stats", "o")).toEqual(["orders", "outbox:mail"]);
  expect(await complete("cancel", "orders", "")).toEqual([]);
  expect(await complete("doctor", "orders", "out")).toEqual(["outbox:mail"]);
  expect(await complete("dead", "re")).toEqual(["reasons", "redrive", "remove"]);
  expect(await complete("dead", "redrive", "ord")).toEqual(["orders"]);
  expect(await complete("list", "orders", "--state", "re")).toEqual(["retrying", "ready"]);
  expect(await complete("--interop", "")).toEqual(["none", "redisson"]);
  expect(await complete("import", "--queue", "ord")).toEqual(["orders"]);
  expect(await complete("import", "")).toEqual([]);
  expect(await complete("schedules", "r")).toEqual(["run", "resume", "remove"]);
  expect(await complete("schedules", "ord")).toEqual(["orders"]);
  expect(await complete("schedules", "run", "ord")).toEqual(["orders"]);
  expect(await complete("schedules", "run", "orders", "nig")).toEqual(["night shift", "nightly"]);
  expect(await complete("schedules", "run", "orders", "nightly", "w")).toEqual(["weekly"]);
  expect(await complete("schedules", "orders", "w")).toEqual(["weekly"]);
  expect(await complete("schedules", "nonsense", "")).toEqual([]);
  expect(await complete("help", "stat")).toEqual(["stats"]);
  expect(await complete("completion", "z")).toEqual(["zsh"]);
  expect(await complete("nonsense", "")).toEqual([]);
  expect(await complete("--redis", server.url, "stats", "--watch", "--w")).toEqual([]);
});

test("queues come from the Redis that the line names; a Redis that is away is silent, and soon", async () => {
  const elsewhere = ["--redis", "redis://127.0.0.1:1", "stats", ""];
  const startedAt = performance.now();
  expect(await complete(...elsewhere)).toEqual([]);
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  const { stdout } = await cli(
    ["completion", "words", "--", "--redis", server.url, "stats", "or"],
    {
      url: "redis://127.0.0.1:1",
    },
  );
  expect(stdout).toBe("orders\tqueue\n");
});
