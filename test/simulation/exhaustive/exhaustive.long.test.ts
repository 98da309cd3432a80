import { expect, test } from "vitest";
import { Redis } from "ioredis";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis } from "../../helpers/redis.ts";
import { explore, type Found, type World } from "./explore.ts";
import { Machine } from "./machine.ts";
import { mutants } from "./mutations.ts";
import { worldNamed, worlds } from "./worlds.ts";

// All orders in which the commands of a few clients can reach Redis, with a fault at every place. `npm run soak` gives
// more faults to each order, and tries the largest worlds and every mutant.

const isLong = process.env["EXHAUSTIVE"] === "long";
const faultsOf = ({ faults, more }: World) => (isLong && more) || faults || {};

/** A Redis of its own: two files must not use the same keys at once. */
async function ownRedis(): Promise<Redis> {
  const server = await startOwnServer();
  return newRedis(server.url);
}

function row({ name }: World, { orders, states, ends, commands, sent, seconds }: Found): string {
  const numbers = [orders, states, ends.size, commands, sent, seconds.toFixed(1)];
  return `| ${name} | ${numbers.join(" | ")} |`;
}

test.for(worlds.filter((world) => isLong || world.isLong !== true))(
  "$name: every order keeps what is promised",
  async (world, { expect: check }) => {
    const found = await explore(new Machine(await ownRedis()), {
      ...world,
      faults: faultsOf(world),
    });
    if (isLong) console.log(row(world, found));
    check(found.problem).toBeUndefined();
    check(found.ends.size).toBeGreaterThan(0);
  },
);

test("pruning loses nothing: without it the same ends are found, in as many orders", async () => {
  const redis = await ownRedis();
  for (const [name, faults] of [
    ["equal deadlines, two movers", {}],
    ["cancel by id and by key, reschedule", {}],
    ["acknowledge, reclaim", {}],
    ["equal deadlines, two movers", { crashes: 1 }],
  ] as const) {
    const world = { ...worldNamed(name), faults };
    const pruned = await explore(new Machine(redis), world);
    const all = await explore(new Machine(redis, { remembers: false }), world, { merges: false });
    // Without merging, each order has a state of its own, and each end is found once for each order.
    expect(pruned.problem ?? all.problem).toBeUndefined();
    expect([...pruned.ends].toSorted()).toEqual([...all.ends].toSorted());
    expect(pruned.orders).toBe(all.orders);
    expect(pruned.states).toBeLessThan(all.states);
  }
});

test.for(mutants.filter(({ isQuick }) => isLong || isQuick))(
  "a mutant is found: $name",
  async (mutant, { expect: check }) => {
    const machine = new Machine(await ownRedis(), { mutation: mutant });
    const world = worldNamed(mutant.world);
    const { problem } = await explore(machine, { ...world, faults: faultsOf(world) });
    check(machine.isMutated).toBe(true);
    if (isLong) console.log(`${mutant.name}: ${problem?.what} after ${problem?.order.join("; ")}`);
    check(problem).toBeDefined();
  },
);
