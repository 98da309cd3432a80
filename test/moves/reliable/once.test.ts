import { expect, test } from "vitest";
import { offerKeyed } from "../../../src/lua/delayed/offer-keyed.ts";
import { transfer } from "../../../src/lua/delayed/transfer.ts";
import { LOOK_AFTER } from "../../../src/lua/fragments/once-record.ts";
import { pullOutOnce } from "../../../src/lua/partitions/pull-out.ts";
import { ackOnce } from "../../../src/lua/reliable/deliveries.ts";
import { forgetOnce, onceHeld } from "../../../src/lua/queue/once.ts";
import { run, type Script } from "../../../src/lua/script.ts";
import { bytes, message, newMoves, onceRecord } from "../../helpers/moves.ts";
import { allTo, drop, push, rowsOf } from "../../helpers/partitions.ts";
import { scriptAt } from "../../helpers/script-at.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

const NOW = 1_900_000_000_000;
const once = message("o", 1000, "k", { once: 5000 });
const other = message("p", 2000, "k", { once: 5000 });

/** Runs a script at an instant, {@link NOW} by default. */
const at = <Key extends string, Arg extends string, Reply, Column extends string>(
  script: Script<Key, Arg, Reply, Column>,
  now = NOW,
) => scriptAt(now, script);

/** The id of the only entry of the stream: Redis gives it, by its own clock. */
const entryIn = async ({ redis, keys }: Streams) => {
  const [[id] = [""]] = await redis.xrange(keys.stream, "-", "+");
  return id;
};

async function moved() {
  const queue = await newStreams("g");
  await queue.seed({ timeouts: [once.delayed] });
  const args = { limit: 100, grace: 0, claim: 0, task: "me", known: 0, makes: 1, mark: 0 };
  await run(queue.redis, at(transfer.stream), queue.keys, args);
  return queue;
}

const acked = (queue: Streams, entry: string, more: object = {}) =>
  run(
    queue.redis,
    at(ackOnce),
    queue.keys,
    { group: "g", consumer: "c", heldCount: 1, process: "host/1", keepFor: 0 },
    [
      {
        entry,
        own: 0,
        address: bytes(once.address),
        key: "k",
        attempt: 1,
        took: "",
        keepKey: 5000,
      },
    ].map((row) => ({ ...row, ...more })),
  );

const offered = async ({ redis, keys }: Streams, one = other, now = NOW) => {
  const row = { member: bytes(one.member), delay: "", deadline: one.deadline, key: one.key };
  const rows = [{ ...row, rule: "once", maxWait: "" }];
  const { results } = await run(redis, at(offerKeyed, now), keys, { channel: keys.channel }, rows);
  return results[0];
};

const held = async ({ redis, keys }: Pick<Streams, "redis" | "keys">, now = NOW) =>
  (await run(redis, at(onceHeld, now), keys, {}, [{ key: "k" }]))[0];

test("transfer: notes what was offered with once, and nothing of the others", async () => {
  const queue = await moved();
  const entry = await entryIn(queue);
  expect(await queue.snapshot()).toMatchObject({
    once: { k: onceRecord(once, { keepFor: 5000, entry }) },
    onceEnds: [["k", Number.parseInt(entry, 10) + LOOK_AFTER]],
  });
  const others = await newStreams("g");
  await others.seed({ timeouts: [message("q", 1000, "plain").delayed] });
  const args = { limit: 100, grace: 0, claim: 0, task: "me", known: 0, makes: 1, mark: 0 };
  await run(others.redis, at(transfer.stream), others.keys, args);
  const noted = await others.snapshot();
  expect([noted.once, noted.onceEnds, noted.stream]).toEqual([
    undefined,
    undefined,
    [expect.objectContaining({ p: "q", t: "plain" })],
  ]);
});

test("ack-once: the only group has handled it, so no entry is remembered", async () => {
  const queue = await moved();
  const [entry = ""] = await queue.deliver("g", "c");
  expect(await acked(queue, entry)).toEqual({ settled: [true], refusal: undefined });
  const record = onceRecord(once, { at: NOW, keepFor: 5000 });
  expect(await queue.snapshot()).toEqual({
    once: { k: record },
    onceEnds: [["k", NOW + 60_000]],
  });
  // A second time, it changes nothing.
  expect(await acked(queue, entry)).toEqual({ settled: [false], refusal: undefined });
  expect(await held(queue, NOW + 4999)).toMatchObject({ stage: "handled", isTaken: true });
  expect(await held(queue, NOW + 5000)).toMatchObject({ handledAt: NOW, isTaken: false });
  expect(await held(queue, NOW + 60_000)).toBeUndefined();
});

test("ack-once: with other groups the entry is remembered, for who looks whether they need it", async () => {
  const queue = await moved();
  await queue.addGroup("h");
  const [entry = ""] = await queue.deliver("g", "c");
  await acked(queue, entry);
  const record = onceRecord(once, { at: NOW, keepFor: 5000, entry });
  expect(await queue.snapshot()).toMatchObject({ once: { k: record } });
  expect(await held(queue)).toMatchObject({ stage: "ready", isTaken: true });
});

test("ack-once: leaves what a newer message has, and makes up for a mover that noted nothing", async () => {
  const queue = await moved();
  const [entry = ""] = await queue.deliver("g", "c");
  const newer = onceRecord(other, { keepFor: 5000, entry: "5-5" });
  await queue.redis.hset(queue.keys.once, "k", bytes(newer));
  await acked(queue, entry);
  expect(await queue.snapshot()).toMatchObject({ once: { k: newer } });

  const unnoted = await moved();
  const [id = ""] = await unnoted.deliver("g", "c");
  await unnoted.redis.del(unnoted.keys.once, unnoted.keys.onceEnds);
  expect(await held(unnoted)).toBeUndefined();
  await acked(unnoted, id);
  expect(await held(unnoted)).toMatchObject({ stage: "handled", isTaken: true });
});

test("ack-once: deliveries without it are only acknowledged", async () => {
  const queue = await newStreams("g");
  await queue.add("a");
  const [entry = ""] = await queue.deliver("g", "c");
  const row = { keepKey: "", address: "", key: "" };
  expect((await acked(queue, entry, row)).settled).toEqual([true]);
  expect(await queue.snapshot()).toEqual({});
});

test("offer-keyed: an offer that is sent again is known by its id, also once the key is free", async () => {
  const queue = await newStreams("g");
  await queue.seed({ once: { k: onceRecord(once, { at: NOW, keepFor: 5000 }) } });
  const first = { deadline: 1000, outcome: "added" };
  expect(await offered(queue, once)).toEqual(first);
  expect(await offered(queue, once, NOW + 59_999)).toEqual(first);
  const existing = { ...first, outcome: "existing", holder: bytes(once.address) };
  expect(await offered(queue)).toEqual({ ...existing, stage: "handled", handledAt: NOW });
  expect(await queue.snapshot()).not.toHaveProperty("timeouts");
  expect(await offered(queue, other, NOW + 5000)).toEqual({ deadline: 2000, outcome: "added" });
});

test("forget-once: drops what has nothing to say, and looks again later where there is a message", async () => {
  const queue = await moved();
  const { redis, keys } = queue;
  const [b, c] = [message("b", 1, "b"), message("c", 1, "c")];
  await queue.seed({
    once: {
      b: onceRecord(b, { at: NOW - 60_000 }),
      c: onceRecord(c, { at: NOW - 60_000, keepFor: 100_000 }),
    },
    onceEnds: [
      ["k", NOW],
      ["b", NOW],
      ["c", NOW - 1],
      ["no record", NOW - 2],
      ["later", NOW + 1],
    ],
  });
  expect(await run(redis, at(forgetOnce), keys, { limit: 1 })).toBe(true);
  expect(await run(redis, at(forgetOnce), keys, { limit: 10 })).toBe(false);
  const { once: left, onceEnds } = await queue.snapshot();
  expect(Object.keys(left ?? {}).toSorted()).toEqual(["c", "k"]);
  expect(onceEnds).toEqual([
    ["later", NOW + 1],
    ["c", NOW + 40_000],
    ["k", NOW + LOOK_AFTER],
  ]);
});

test("pull-out-once, push-in: what was handled goes along, and what is here of a newer message stays", async () => {
  const queue = await newMoves();
  const handled = onceRecord(once, { at: NOW, keepFor: 5000 });
  const gone = message("d", 1, "d");
  await queue.seed({
    once: {
      k: handled,
      dead: onceRecord(gone, { entry: "5-5" }),
      old: onceRecord(gone, { at: 1 }),
    },
    onceEnds: [
      ["k", NOW + 60_000],
      ["dead", 1],
      ["old", 2],
    ],
  });
  const { redis, keys } = queue;
  const args = { own: 0, buckets: allTo(1), limit: 10 };
  const batch = await run(redis, at(pullOutOnce), keys, args);
  expect(rowsOf(batch)).toEqual([{ to: 1, kind: "once", score: "", name: "k", value: handled }]);
  expect(batch.isMore).toBe(true);
  const { journal, ...left } = await queue.snapshot();
  expect([Object.keys(journal ?? {}), left]).toEqual([["last", "rows"], {}]);
  expect(await run(redis, at(pullOutOnce), keys, args)).toMatchObject({ ...batch, isOld: true });

  const there = await newMoves();
  expect(await push(there, batch)).toBe(true);
  expect(await push(there, batch)).toBe(false);
  expect(await held(there)).toMatchObject({ stage: "handled", handledAt: NOW });
  expect((await there.snapshot()).onceEnds).toEqual([["k", NOW + 60_000]]);

  const newer = message("z", 3000, "k", { once: 5000 });
  for (const [record, stays] of [
    [onceRecord(newer, { entry: "5-5" }), true],
    [onceRecord(once, { at: NOW + 1 }), true],
    [onceRecord(once, { entry: "5-5" }), false],
    [onceRecord(message("a", 1, "k"), { at: 1 }), false],
    ["foreign", false],
  ] as const) {
    const one = await newMoves();
    await one.seed({ once: { k: record } });
    await push(one, batch);
    const found = (await one.snapshot()).once?.["k"];
    if (stays) expect(found).toBe(record);
    else expect(found?.slice(0, 40)).toBe(handled);
  }

  await drop(queue, batch);
  expect(await run(redis, at(pullOutOnce), keys, args)).toMatchObject({ number: 0, isMore: false });
});
