import { expect, test } from "vitest";
import type { OfferResult } from "../../../src/index.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { expectEachOnce } from "../../helpers/ledger.ts";
import { upTo } from "../../helpers/numbers.ts";
import { redisUrl, uniqueName } from "../../helpers/redis.ts";
import { Roles } from "../../helpers/roles.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

/* An offer with `once` that is sent again is stored once, even if its message was handled before the second copy arrived. */

test.each([
  { what: "an ordinary queue", options: {}, rounds: 5 },
  { what: "partitions", options: { partitions: 3 }, rounds: 5 },
  { what: "partitions whose number changes", options: { partitions: 2 }, rounds: 1, count: 5 },
])(
  "$what: 100 offers whose connection is cut, and which are sent again once they were handled",
  async ({ options, rounds, count }) => {
    const name = uniqueName("once-cut");
    const proxy = await startProxy(redisUrl());
    const roles = new Roles(proxy);
    const line = newLineThatMayFail({ redis: proxy.url, transfer: false, callTimeout: 30_000 });
    const queue = line.getReliableQueue<string>(name, options);
    const worker = newLine();
    const handled: string[] = [];
    worker.getReliableQueue<string>(name, options).subscribe((key) => void handled.push(key), {
      concurrency: 10,
    });
    const offer = (key: string) => queue.offer(key, 0, { key, once: "handled" });
    // From now on Redis knows the script.
    const warm = await Promise.all(upTo(30).map((i) => offer(`warm ${i}`)));
    await eventually(() => handled.length === warm.length);
    handled.length = 0;

    let isLosing = false;
    proxy.onReply = (_, connection) =>
      isLosing && roles.nameOf(connection)?.startsWith("delayline:commands") ? "drop" : "forward";
    const results: OfferResult[] = [];
    const keys = upTo(100).map((i) => `key ${i}`);
    for (const round of upTo(rounds)) {
      isLosing = true;
      const some = keys.filter((_, i) => i % rounds === round);
      const offers: Promise<OfferResult>[] = [];
      for (const key of some) {
        offers.push(offer(key));
        await new Promise((resolve) => setImmediate(resolve));
      }
      const offering = Promise.all(offers);
      offering.catch(() => {});
      // Their messages are gone, and their keys are free.
      await eventually(() => some.every((key) => handled.includes(key)));
      await eventually(async () => {
        const stats = await worker.getReliableQueue(name, options).stats();
        expect(stats).toMatchObject({ delayed: 0, ready: 0, inFlight: 0 });
      });
      proxy.refuse();
      proxy.cut();
      isLosing = false;
      if (count !== undefined) await worker.setPartitions(name, count);
      await proxy.accept();
      results.push(...(await offering));
    }
    expect(results.map(({ outcome }) => outcome)).toEqual(keys.map(() => "added"));
    expect(new Set(results.map(({ id }) => id)).size).toBe(keys.length);
    await eventually(async () => {
      const stats = await worker.getReliableQueue(name, options).stats();
      expect(stats).toMatchObject({ delayed: 0, ready: 0, inFlight: 0 });
    });
    expectEachOnce(keys, handled);
    // A new offer is no copy.
    expect(await offer("key 0")).toMatchObject({ outcome: "added" });
  },
);
