import { expect, test } from "vitest";
import { cli } from "../../helpers/cli.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

test("get --wait ends once the message is in the state", async () => {
  const name = uniqueName();
  const queue = newLine().getReliableQueue(name);
  await queue.offer("x", HOUR, { key: "order:1" });
  let said = "";
  const waiting = cli(["get", name, "order:1", "--wait", "in-flight", "--within", "1m"], {
    isTty: true,
    onStderr: (text) => (said += text),
  });
  await eventually(() => said.includes('"order:1" is delayed ...'));
  await queue.promote("order:1");
  const delivery = await queue.take();
  const found = await waiting;
  expect(found.code).toBe(0);
  expect(found.stdout).toContain(`"order:1" is in flight in queue "${name}".`);
  const gone = cli(["get", name, "order:1", "--wait", "gone", "--json"]);
  await delivery.ack();
  expect(await gone).toMatchObject({ code: 0, json: [{ wanted: "order:1", found: false }] });
});

test("get --wait gives up in time, and is refused where it could not end", async () => {
  const name = uniqueName();
  const queue = newLine().getDelayedQueue(name);
  await queue.offer("x", HOUR, { key: "order:1" });
  const late = await cli(["get", name, "order:1", "--wait", "gone", "--within", "700ms"]);
  expect(late).toMatchObject({ code: 1, stdout: "" });
  expect(late.stderr).toContain(`"order:1" is delayed in queue "${name}" after 700 ms.`);
  for (const argv of [
    ["get", "order:1", "--wait", "gone"],
    ["get", name, "order:1", "--wait", "dead"],
    ["get", name, "order:1", "--wait", "handled"],
  ]) {
    expect((await cli(argv)).code, argv.join(" ")).toBe(2);
  }
  await queue.cancel("order:1");
  await queue.offer("y", HOUR);
  expect((await cli(["get", name, "order:1", "--wait", "gone"])).stdout).toBe(
    `"order:1" is gone from queue "${name}": handled, cancelled or removed.\n`,
  );
});

test("doctor --watch prints what is new, and what is over, once", async () => {
  const [good, bad] = [uniqueName("good"), uniqueName("bad")];
  const queue = newLine().getDelayedQueue(good);
  await queue.offer("x", HOUR);
  const redis = newRedis();
  const interrupt = new AbortController();
  const rounds: string[] = [];
  const watching = cli(["doctor", good, bad, "--watch", "--interval", "1s"], {
    isTty: true,
    env: { NO_COLOR: "1" },
    signal: interrupt.signal,
    onStderr: (text) => {
      if (text.includes("Examining")) rounds.push(text);
    },
    onStdout: (text) => (said += text),
  });
  let said = "";
  await eventually(() => rounds.length > 1);
  await redis.lpush(`redisson_delay_queue_timeout:{${bad}}`, "of another type");
  await eventually(() => said.includes('  error: key-type in queue "bad'));
  const seen = rounds.length;
  await eventually(() => rounds.length > seen + 2);
  const checks = Array.from(said.matchAll(/ {2}error: (\S+) in queue "bad/g), ([, check]) => check);
  expect(checks.length).toBeGreaterThan(0);
  expect(new Set(checks).size).toBe(checks.length);
  await redis.del(`redisson_delay_queue_timeout:{${bad}}`);
  await eventually(() => said.includes('over: error: key-type in queue "bad'));
  interrupt.abort();
  expect(await watching).toMatchObject({ code: 130 });
});
