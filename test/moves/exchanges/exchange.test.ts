import { describe, expect, test } from "vitest";
import { exchange, exchangeIntoPartition } from "../../../src/lua/exchanges/exchange.ts";
import { asTarget } from "../../../src/lua/exchanges/putting.ts";
import { run } from "../../../src/lua/script.ts";
import {
  asAddress,
  asMember,
  bytes,
  indexEntry,
  message,
  newMoves,
  packRetry,
  retryName,
  type Message,
  type Moves,
} from "../../helpers/moves.ts";
import { newRedis } from "../../helpers/redis.ts";

const FAR = 5_000_000_000_000;
const [old, third] = [message("a", FAR, "key a"), message("b", FAR + 1, "key b")];
const other = message("c", FAR + 2, "key c");
const same = message("n", FAR + 3, "key a");
const keyless = message("o", FAR + 4);

const stateOf = (...all: readonly Message[]) => ({
  timeouts: all.map((one) => one.delayed),
  businessKeys: Object.fromEntries(
    all.filter(({ key }) => key !== "").map((one) => [one.key, indexEntry(one)]),
  ),
});

const rowOf = (which: { id?: Buffer; key?: string }, one: Message, maxWait: number | "" = "") => ({
  id: "",
  key: "",
  ...which,
  member: bytes(one.member),
  delay: "",
  deadline: one.deadline,
  newKey: one.key,
  maxWait,
});

/** Runs the script; what is offered goes to `to`. */
function exchanging(
  { redis, keys }: Moves,
  rows: readonly ReturnType<typeof rowOf>[],
  {
    to = keys,
    elementsAre = "addresses",
  }: { to?: Moves["keys"]; elementsAre?: "addresses" | "members" } = {},
) {
  const args = {
    elementsAre,
    toChannel: to.channel,
    toElements: elementsAre,
    toFact: "",
    toPartition: -1,
  };
  return run(redis, exchange, { ...keys, ...asTarget(to) }, args, rows);
}

const put = (deadline: number, outcome = "added", holder?: Message) =>
  expect.objectContaining({
    results: [{ deadline, outcome, holder: holder && bytes(holder.address) }],
  }) as unknown;
const DONE = (one: Message) => ({ isCancelled: true, put: put(one.deadline), refusal: undefined });
const GONE = { isCancelled: false, put: undefined, refusal: undefined };
const HELD = (by: Message) => ({
  isCancelled: false,
  put: put(by.deadline, "existing", by),
  refusal: undefined,
});

describe.each([
  { order: "addresses", element: asAddress },
  { order: "members", element: asMember },
] as const)("exchange, a LIST of $order", ({ order: elementsAre, element }) => {
  const isExact = elementsAre === "members";
  const byId = { id: bytes(old.address) };
  const byKey = { key: old.key };

  test.each([
    { what: "its own key, by id", which: byId, one: same },
    { what: "its own key, by key", which: byKey, one: same },
    { what: "a free key", which: byKey, one: other },
    { what: "no key", which: byId, one: keyless },
  ])("both, with $what", async ({ which, one }) => {
    const queue = await newMoves();
    await queue.seed({ ...stateOf(old, third), order: [old, third].map(element) });
    expect(await exchanging(queue, [rowOf(which, one)], { elementsAre })).toEqual([DONE(one)]);
    const left = isExact ? [third, one] : [old, third, one];
    expect(await queue.snapshot()).toEqual({ ...stateOf(third, one), order: left.map(element) });
  });

  test.each([
    {
      what: "a key that a third message holds",
      which: byId,
      one: { ...other, key: third.key },
      reply: HELD(third),
    },
    { what: "nothing there by id", which: { id: bytes(other.address) }, one: keyless, reply: GONE },
    { what: "nothing there by key", which: { key: other.key }, one: keyless, reply: GONE },
  ])("neither: $what", async ({ which, one, reply }) => {
    const queue = await newMoves();
    const state = { ...stateOf(old, third), order: [old, third].map(element) };
    await queue.seed(state);
    expect(await exchanging(queue, [rowOf(which, one)], { elementsAre })).toEqual([reply]);
    expect(await queue.snapshot()).toEqual(state);
  });
});

test("rows are carried out one after the other", async () => {
  const queue = await newMoves();
  await queue.seed(stateOf(old, third));
  const again = message("d", FAR + 5, old.key);
  const rows = [
    rowOf({ key: old.key }, other),
    // Gone by now.
    rowOf({ id: bytes(old.address) }, keyless),
    // The first row has put it.
    rowOf({ key: other.key }, again),
    rowOf({ key: third.key }, message("e", FAR + 6, old.key)),
  ];
  expect(await exchanging(queue, rows)).toEqual([DONE(other), GONE, DONE(again), HELD(again)]);
  expect(await queue.snapshot()).toMatchObject(stateOf(third, again));
});

test("retries leave for every group, and the key is the new message's", async () => {
  const queue = await newMoves();
  const names = ["g", "h"].map((group) => retryName(old, group));
  await queue.seed({
    groups: ["g", "h"],
    businessKeys: { [old.key]: indexEntry(old) },
    retries: names.map((name, i) => [name, FAR + i]),
    retrying: Object.fromEntries(names.map((name) => [name, packRetry(old, 1)])),
  });
  expect(await exchanging(queue, [rowOf({ id: bytes(old.address) }, same)])).toEqual([DONE(same)]);
  const { timeouts, businessKeys, retries, retrying } = await queue.snapshot();
  expect({ timeouts, businessKeys }).toEqual(stateOf(same));
  expect([retries, retrying]).toEqual([undefined, undefined]);
});

test("a limit of its wait begins with the new message", async () => {
  const queue = await newMoves();
  await queue.seed(stateOf(old));
  const [done] = await exchanging(queue, [rowOf({ key: old.key }, same, 1000)]);
  const deadline = done?.put?.results[0]?.deadline ?? 0;
  expect(deadline).toBeLessThan(Date.now() + 60_000);
  const entry = (await queue.snapshot()).businessKeys?.[old.key] ?? "";
  expect(entry).toHaveLength(41);
});

test("into another queue: each index has its own keys", async () => {
  const [queue, target] = [await newMoves(), await newMoves()];
  await queue.seed(stateOf(old, third));
  const late = message("l", FAR + 9, same.key);
  const rows = [rowOf({ key: old.key }, same), rowOf({ key: third.key }, late)];
  expect(await exchanging(queue, rows, { to: target.keys })).toEqual([DONE(same), HELD(same)]);
  expect(await queue.snapshot()).toEqual(stateOf(third));
  expect(await target.snapshot()).toEqual({
    ...stateOf(same),
    order: [asAddress(same)],
    channel: [String(same.deadline)],
  });
});

test("into a partition, whose fact is checked there", async () => {
  const [queue, target] = [await newMoves(), await newMoves()];
  await queue.seed(stateOf(old));
  await target.seed({ partitions: "3:4:4:stable:1" });
  const into = (toFact: string) =>
    run(
      queue.redis,
      exchangeIntoPartition,
      { ...queue.keys, ...asTarget(target.keys) },
      { toChannel: "c", toElements: "addresses", toFact, toPartition: 1 },
      [rowOf({ key: old.key }, same)],
    );
  expect(await into("2:4:2:moving:1")).toEqual([
    { isCancelled: false, put: undefined, refusal: "TARGET 3:4:4:stable:1" },
  ]);
  expect(await queue.snapshot()).toEqual(stateOf(old));
  expect(await into("3:4:4:stable:1")).toEqual([DONE(same)]);
  expect(await queue.snapshot()).toEqual({});
  expect(await target.snapshot()).toMatchObject(stateOf(same));
});

test("what is refused for one row is done for the others", async () => {
  const queue = await newMoves();
  await queue.seed(stateOf(old, third));
  const user = `u-${queue.keys.ready}`;
  await queue.redis.acl("SETUSER", user, "on", "nopass", "~*", "&*", "+@all", "-publish");
  const limited = newRedis();
  await limited.auth(user, "any");
  // The first is the new head, which needs a wake-up.
  const first = message("d", FAR - 1, old.key);
  const replies = await exchanging({ ...queue, redis: limited }, [
    rowOf({ key: old.key }, first),
    rowOf({ key: third.key }, same),
    rowOf({ key: third.key }, other),
  ]);
  await queue.redis.acl("DELUSER", user);
  expect(replies).toEqual([
    {
      isCancelled: false,
      put: undefined,
      refusal: expect.stringMatching(/NOPERM|can't run|ACL failure/) as unknown,
    },
    HELD(old),
    DONE(other),
  ]);
  expect(await queue.snapshot()).toMatchObject(stateOf(old, other));
});
