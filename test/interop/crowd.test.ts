import { expect, test } from "vitest";
import { expectEachOnce } from "../helpers/ledger.ts";
import { newLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { uniqueName } from "../helpers/redis.ts";
import { describeRedisson } from "./describe-redisson.ts";
import { NEWEST_REDISSON } from "./java-build.ts";
import { java, type JavaValue } from "./java-value.ts";
import { upTo } from "../helpers/numbers.ts";

// Both sides offer, move and take, all at once.

describeRedisson("a crowd", (redisson) => {
  test.each(["none", "redisson"] as const)(
    "a crowd on both sides gets each message once, with interop %s",
    { timeout: 60_000 },
    async (interop) => {
      const isNewest = redisson().version === NEWEST_REDISSON;
      const count = isNewest && interop === "none" ? 20_000 : 4000;
      const evens = upTo(count).filter((n) => n % 2 === 0);
      const odds = upTo(count).filter((n) => n % 2 === 1);
      const name = uniqueName();
      const line = newLine({ codec: "json", interop });
      const inJava = redisson().client.queue(name, "TypedJsonJacksonCodec");
      const taken: number[] = [];
      line.getBlockingQueue<number>(name).subscribe((n) => void taken.push(n), { concurrency: 10 });
      await inJava.ready.startTaking(4);

      const delayed = line.getDelayedQueue<number>(name);
      const byNode = async () => {
        for (let i = 0; i < evens.length; i += 500) {
          const some = evens.slice(i, i + 500);
          await delayed.offerMany(some.map((payload) => ({ payload, delay: randomDelay() })));
        }
      };
      await Promise.all([
        byNode(),
        inJava.delayed.offerMany(odds.map(java.int), odds.map(randomDelay)),
      ]);
      await eventually(async () => taken.length + (await inJava.ready.takenCount()) >= count, {
        within: 30_000,
        what: "all are taken",
      });
      const takenByJava = (await inJava.ready.stopTaking()).map(numberOf);
      expectEachOnce(upTo(count), [...taken, ...takenByJava]);
      // Both sides took part.
      expect(taken.length).toBeGreaterThan(0);
      expect(takenByJava.length).toBeGreaterThan(0);
      expect(await delayed.size()).toBe(0);
      await inJava.delayed.destroy();
    },
  );
});

function randomDelay(): number {
  return Math.floor(Math.random() * 3000);
}

function numberOf(value: JavaValue): number {
  return value !== null && "int" in value ? Number(value.int) : NaN;
}
