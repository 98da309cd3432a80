import { expect, test } from "vitest";
import { cli } from "../../helpers/cli.ts";
import { newLine } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";

test("flow sets a rate, shows it, and ends it", async () => {
  const name = uniqueName("flow");
  const queue = newLine().getDelayedQueue(name, { transfer: false });
  await queue.offer("a", 0);
  expect((await cli(["flow", name])).stdout).toBe(`Queue "${name}" has no rate.\n`);
  const dry = await cli(["flow", name, "--rate", "50/s", "--dry-run"]);
  expect(dry.stderr).toBe(
    `Would let 50 messages in 1 s become ready in queue "${name}". Nothing was changed.\n`,
  );
  expect(await queue.flow.get()).toBeUndefined();
  const set = await cli(["flow", name, "--rate", "50/s", "--burst", "3", "--yes"]);
  expect(set.code).toBe(0);
  expect(await queue.flow.get()).toEqual({ rate: { limit: 50, per: 1000, burst: 3 } });
  expect(JSON.parse((await cli(["flow", name, "--json"])).stdout)).toMatchObject({
    queue: name,
    flow: { rate: { limit: 50, per: 1000, burst: 3 } },
  });
  expect((await cli(["flow", name, "--clear", "--yes"])).code).toBe(0);
  expect(await queue.flow.get()).toBeUndefined();
});

test.each([
  [["--rate", "50"], "--rate must be such as 50/s, 500/m or 10/250ms"],
  [["--rate", "50/x"], "--rate must be a duration"],
  [["--rate", "0/s"], "--rate must be a whole number between 1"],
  [["--rate", "5/2d"], "--rate must be within 1ms to 1d"],
  [["--rate", "5/s", "--burst", "0"], "--burst must be a whole number between 1"],
  [["--burst", "5"], "--burst needs --rate"],
  [["--rate", "5/s", "--clear"], "--rate and --clear exclude each other"],
])("flow %j is refused", async (options, message) => {
  const refused = await cli(["flow", "orders", ...options, "--yes"]);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain(message);
});

test("due --rate shows what would become ready, and sets nothing", async () => {
  const name = uniqueName("flow");
  const queue = newLine().getDelayedQueue(name, { transfer: false });
  await queue.offerMany(Array.from({ length: 30 }, (_, i) => ({ payload: i, delay: 3_600_000 })));
  const argv = ["due", name, "--rate", "10/m", "--burst", "1", "--step", "1m", "--count", "70"];
  const { stdout, code } = await cli([...argv, "--json"]);
  expect(code).toBe(0);
  const { spans, endsAt } = JSON.parse(stdout) as {
    spans: { due: number; ready: number; waiting: number }[];
    endsAt: number;
  };
  const busy = spans.filter(({ due, ready }) => due + ready > 0);
  expect(busy.reduce((sum, { due }) => sum + due, 0)).toBe(30);
  expect(busy.reduce((sum, { ready }) => sum + ready, 0)).toBe(30);
  expect(Math.max(...busy.map(({ ready }) => ready))).toBeLessThanOrEqual(11);
  expect(endsAt).toBeGreaterThan(Date.now() + 3_600_000 + 100_000);
  expect((await cli(argv)).stdout).toMatch(/FROM +DUE +READY +WAITING/);
  expect(await queue.flow.get()).toBeUndefined();
  expect((await cli(["due", "--rate", "10/m"])).stderr).toContain("--rate needs a queue");
});
