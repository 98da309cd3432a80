import { expect, test } from "vitest";
import { raisePaces, usedPaces } from "../../../src/lua/partitions/lane-paces.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves } from "../../helpers/moves.ts";
import { upTo } from "../../helpers/numbers.ts";
import { scriptAt } from "../../helpers/script-at.ts";

const NOW = 5_000_000_000_000;
const micros = (instant: number) => instant * 1000;

test("used-paces tells what lanes have used, in pages, and not those that have all of their burst", async () => {
  const { redis, keys, seed } = await newMoves();
  const page = (cursor = "0") => run(redis, scriptAt(NOW, usedPaces), keys, { cursor });
  expect(await page()).toEqual({ cursor: "0", paces: [] });
  await seed({
    lanePaces: [
      ["past", micros(NOW - 5)],
      ["now", micros(NOW)],
      ["a", micros(NOW) + 7],
      ["b", micros(NOW + 3)],
      ["c", micros(NOW + 9)],
    ],
  });
  const [a, b, c] = [
    { name: "a", used: 7 },
    { name: "b", used: 3000 },
    { name: "c", used: 9000 },
  ];
  expect(await page()).toEqual({ cursor: "0", paces: [a, b, c] });
  await redis.zadd(keys.lanePaces, ...upTo(1000).flatMap((i) => [micros(NOW + i), `lane ${i}`]));
  const found = new Map<string, number>();
  let [cursor, pages] = ["0", 0];
  do {
    const { paces, ...next } = await page(cursor);
    for (const { name, used } of paces) found.set(name, used);
    ({ cursor } = next);
    pages++;
  } while (cursor !== "0");
  expect(pages).toBeGreaterThan(5);
  expect(found.size).toBe(1002);
  expect(found.get("lane 7")).toBe(7000);
});

test("raise-paces notes what is used by this server's clock, and never less than is noted", async () => {
  const { redis, keys, seed, snapshot } = await newMoves();
  await seed({
    lanePaces: [
      ["more", micros(NOW + 50)],
      ["less", micros(NOW + 1)],
    ],
  });
  const rows = [
    { name: "more", used: 9000 },
    { name: "less", used: 9000 },
    { name: "new", used: 20_000 },
  ];
  await run(redis, scriptAt(NOW, raisePaces), keys, {}, rows);
  const lanePaces = [
    ["less", micros(NOW + 9)],
    ["new", micros(NOW + 20)],
    ["more", micros(NOW + 50)],
  ];
  expect(await snapshot()).toEqual({ lanePaces });
  const first = await redis.pttl(keys.lanePaces);
  expect(first).toBeGreaterThan(500);
  // It lives as long as the longest.
  await run(redis, scriptAt(NOW, raisePaces), keys, {}, [{ name: "long", used: 60_000_000 }]);
  await run(redis, scriptAt(NOW, raisePaces), keys, {}, [{ name: "short", used: 1 }]);
  expect(await redis.pttl(keys.lanePaces)).toBeGreaterThan(59_000);
});
