import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { startSentinelPair } from "../../helpers/sentinel.ts";
import { HOUR, MINUTE, newClock } from "../../helpers/test-clock.ts";

test("a ladder behind a Sentinel: each attempt at its instant", async () => {
  const { sentinelPort } = await startSentinelPair("clocked");
  const redis = new Redis({
    sentinels: [{ host: "127.0.0.1", port: sentinelPort }],
    name: "clocked",
    failoverDetector: true,
  });
  onTestFinished(() => redis.disconnect());
  const clock = await newClock({ now: "2026-03-28T08:00:00.000Z" });
  const line = newLine({ redis });
  const queue = line.getReliableQueue<string>(uniqueName("ladder"), { retry: [MINUTE, HOUR] });
  const attempts: string[] = [];
  queue.subscribe(
    (_, { attempt }) => {
      attempts.push(`${attempt} at ${clock.now.toISOString()}`);
      if (attempt < 3) throw new Error("not yet");
    },
    { onError: () => {} },
  );
  await queue.offer("notice", HOUR);
  await clock.advance("1 day");
  expect(attempts).toEqual([
    "1 at 2026-03-28T09:00:00.000Z",
    "2 at 2026-03-28T09:01:00.000Z",
    "3 at 2026-03-28T10:01:00.000Z",
  ]);
});
