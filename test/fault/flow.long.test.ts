import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { queueKeys } from "../../src/queue/keys.ts";
import type { Rate } from "../../src/index.ts";
import { bundle } from "../helpers/bundle.ts";
import { startChild } from "../helpers/child.ts";
import { newLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { expectEachOnce } from "../helpers/ledger.ts";
import { upTo } from "../helpers/numbers.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";

const mover = new URL("workers/mover.ts", import.meta.url);

/** A rate, and between which instants of the server's clock it began to hold. */
interface Set {
  readonly rate: Required<Rate>;
  readonly from: number;
  readonly by: number;
}

/** How many messages the rates allow between two instants, at most. */
function allowed(sets: readonly Set[], first: number, last: number): number {
  const instants = [first, last, ...sets.flatMap(({ from, by }) => [from, by])]
    .filter((at) => at >= first && at <= last)
    .toSorted((a, b) => a - b);
  let sum = Math.max(...sets.map(({ rate }) => rate.burst));
  for (const [i, at] of instants.slice(1).entries()) {
    const before = instants[i] ?? at;
    // While one replaces another, either may hold.
    const holding = sets.filter(
      ({ from }, k) => from <= before && (sets[k + 1]?.by ?? Infinity) >= at,
    );
    sum += Math.max(...holding.map(({ rate }) => rate.limit / rate.per)) * (at - before);
  }
  return sum;
}

test("no window of time has more than the rate allows, while movers are killed, the queue is paused, and the rate is changed", async () => {
  const name = uniqueName("flow");
  const redis = newRedis();
  const keys = queueKeys(name);
  const program = await bundle(mover);
  const start = async () => {
    const child = startChild(program, { env: { REDIS: redisUrl(), QUEUE: name } });
    await child.next();
    return child;
  };
  const queue = newLine({ transfer: false }).getReliableQueue<string>(name);
  const now = async () => {
    const [seconds, micros] = await redis.time();
    return Number(seconds) * 1000 + Number(micros) / 1000;
  };
  const sets: Set[] = [];
  const set = async (limit: number, burst: number) => {
    const rate = { limit, per: 1000, burst };
    const from = await now();
    await queue.flow.set({ rate });
    sets.push({ rate, from, by: await now() });
  };

  await set(150, 15);
  const sent = upTo(1500).map((i) => `message ${i}`);
  const movers = await Promise.all(upTo(3).map(start));
  await queue.offerMany(sent.map((payload, i) => ({ payload, delay: i / 2 })));
  const chaos = async () => {
    for (const round of upTo(7)) {
      await sleep(300);
      await movers[round % 3]?.kill("SIGKILL");
      movers[round % 3] = await start();
      if (round === 1) await set(400, 8);
      if (round === 2) await queue.pause();
      if (round === 3) await queue.resume();
      if (round === 4) await set(60, 30);
      if (round === 5) await set(300, 1);
    }
    await set(500, 40);
  };
  await chaos();
  await eventually(async () => (await redis.xlen(keys.stream)) >= sent.length, { within: 60_000 });

  const entries = await redis.xrange(keys.stream, "-", "+");
  const payloads = entries.map(([, fields]) => JSON.stringify(fields[fields.indexOf("p") + 1]));
  expectEachOnce(
    payloads.map((text) => /message \d+/.exec(text)?.[0] ?? text),
    sent,
  );
  const readyAt = entries.map(([id]) => Number(id.split("-")[0]));
  let closest = 0;
  for (const [i, first] of readyAt.entries()) {
    for (let k = i; k < readyAt.length; k++) {
      // The ids of entries are cut to milliseconds.
      const most = allowed(sets, first, (readyAt[k] ?? NaN) + 1);
      closest = Math.max(closest, (k - i + 1) / most);
      if (k - i + 1 > most + 1)
        throw new Error(`${k - i + 1} within ${readyAt[k]! - first} ms, allowed ${most}`);
      // Longer windows are made of these.
      if (k > i + 400) break;
    }
  }
  // The rate was also used.
  expect(closest).toBeGreaterThan(0.8);
}, 180_000);
