import { expect, test } from "vitest";
import { cli as cliOn } from "../../helpers/cli.ts";
import { newLine } from "../../helpers/delayline.ts";
import { startSentinelPair } from "../../helpers/sentinel.ts";

const HOUR = 3_600_000;

test("with --sentinel every command finds the master", async () => {
  const { master, sentinelPort } = await startSentinelPair("main", 60_000);
  await newLine({ redis: master.url })
    .getDelayedQueue("orders")
    .offer("x", HOUR, { key: "order:1" });
  const url = `redis://127.0.0.1:${sentinelPort}`;
  const cli = (...argv: string[]) => cliOn([...argv, "--sentinel", "main"], { url });

  expect(await cli("queues")).toMatchObject({ code: 0, stdout: "orders\n" });
  expect((await cli("stats", "--json")).json).toMatchObject([{ queue: "orders", delayed: 1 }]);
  const found = await cli("get", "order:1");
  expect(found).toMatchObject({ code: 0, stderr: expect.stringMatching(/ --sentinel main\n$/) });
  expect((await cli("cancel", "orders", "order:1", "--yes")).code).toBe(0);
  expect((await cli("doctor", "orders")).stdout).not.toMatch(
    /^(?:error: (?:reachable|usable)|repair.*sentinels:)/m,
  );

  const unknown = await cliOn(["queues", "--sentinel", "other", "--timeout", "2s"], { url });
  expect(unknown.code).toBe(3);
});
