import { expect, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { packMember } from "../../../src/queue/message/message.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { HOUR, SECOND } from "../../helpers/test-clock.ts";

test("a preview of lanes has the first 100,000 messages, and tells up to when that is", async () => {
  const queue = newLine().getDelayedQueue(uniqueName("preview"));
  const { timeouts } = queueKeys(queue.name);
  const redis = newRedis();
  const begin = Date.now() + HOUR;
  const deadline = (i: number) => begin + 10 * i;
  for (let i = 0; i < 100_600; i += 1000) {
    const some = Array.from({ length: 1000 }, (_, k) => [
      deadline(i + k),
      packMember(Buffer.from(String(i + k).padStart(16)), Buffer.from("1")),
    ]);
    await redis.zadd(timeouts, ...some.flat());
  }
  const flow = { lane: { rate: { limit: 1000, per: SECOND } } };
  const spans = { from: begin, step: 10 * SECOND, count: 101 };
  const preview = await queue.flow.preview({ flow, ...spans });
  expect(preview.seenUntil).toBe(deadline(99_999));
  expect(preview.spans.map(({ ready }) => ready)).toEqual([
    ...Array.from({ length: 100 }, () => 1000),
    0,
  ]);
  const first = await queue.flow.preview({ flow, ...spans, count: 99 });
  expect(first.seenUntil).toBeUndefined();
});
