import { expect, test } from "vitest";
import {
  dueLanes,
  handPage,
  heldLanes,
  lanePage,
  retryLanes,
  usedRates,
  type DueCursor,
} from "../../../src/lua/queue/lanes.ts";
import { run } from "../../../src/lua/script.ts";
import { packTrailer } from "../../../src/queue/message/trailer.ts";
import {
  asText,
  message,
  newMoves,
  retryFor,
  type Bytes,
  type Moves,
} from "../../helpers/moves.ts";
import { scriptAt } from "../../helpers/script-at.ts";

const NOW = 5_000_000_000_000;

/** `count` turns of a lane. */
const turnsOf = (lane: string, count: number): [turn: Bytes, score: number][] =>
  Array.from({ length: count }, (_, i) => [
    `${String.fromCharCode(lane.length)}${lane}\x80\x18${String(i).padStart(24, "0")}`,
    0,
  ]);

const pageFrom = ({ redis, keys }: Moves, from: Buffer, step: number) =>
  run(redis, scriptAt(NOW, lanePage), keys, { from, step });

/** All pages of `step` lanes: of each lane how many wait, and until when it rests. */
async function lanesIn(queue: Moves, step: number) {
  const found: unknown[] = [];
  let from: Buffer | undefined = Buffer.alloc(0);
  while (from !== undefined) {
    const page: ReturnType<typeof lanePage.reply> = await pageFrom(queue, from, step);
    expect(page.lanes.length).toBeLessThanOrEqual(step);
    found.push(...page.lanes.map(({ lane, waiting, restsUntil }) => [lane, waiting, restsUntil]));
    from = page.next;
  }
  return found;
}

test("lane-page without turns: no lanes", async () => {
  const queue = await newMoves();
  expect(await pageFrom(queue, Buffer.alloc(0), 5)).toEqual({ lanes: [], next: undefined });
});

test.each([1, 2, 3, 50])(
  "lane-page counts who waits in each lane, in pages of %i, and changes nothing",
  async (step) => {
    const queue = await newMoves();
    await queue.seed({
      turns: [
        ...turnsOf("", 2),
        ...turnsOf("a", 3),
        ...turnsOf("b", 1),
        ...turnsOf("ab", 20),
        ...turnsOf("x".repeat(100), 4),
      ],
      resting: [
        ["a", NOW + 70],
        ["ab", NOW],
        // A lane in which nobody waits.
        ["nobody", NOW + 10],
      ],
    });
    const before = await queue.snapshot();
    expect(await lanesIn(queue, step)).toEqual([
      ["", 2, undefined],
      ["a", 3, NOW + 70],
      ["b", 1, undefined],
      ["ab", 20, undefined],
      ["x".repeat(100), 4, undefined],
    ]);
    expect(await queue.snapshot()).toEqual(before);
  },
);

test.each([1, 50])("bytes that are no turn end no page early, in pages of %i", async (step) => {
  const queue = await newMoves();
  const foreign = ["", "\x01a\xff\xff\x01", "\x01a\xff\xff\x02", "\xff\xffab", "\xff\xffcd"];
  await queue.seed({
    turns: [...foreign.map((turn) => [turn, 0] as const), ...turnsOf("b", 2)],
  });
  const lanes = await lanesIn(queue, step);
  expect(lanes).toContainEqual(["b", 2, undefined]);
  expect(lanes.length).toBeLessThanOrEqual(6);
});

/** A message in a lane that falls due then. */
const inLane = (payload: string, deadline: number, lane: string) =>
  message(payload, deadline, "", { lane, priority: 7 }).delayed;

/** What falls due by `latest`, in pages of `step`. */
async function dueIn(
  { redis, keys }: Moves,
  script: typeof dueLanes,
  latest: number,
  step: number,
) {
  const found: [due: number, lane: string | undefined][] = [];
  let next: DueCursor | undefined = { score: "", skip: 0 };
  let pages = 0;
  while (next !== undefined) {
    const page: ReturnType<typeof dueLanes.reply> = await run(redis, script, keys, {
      ...next,
      latest,
      step,
    });
    found.push(...page.rows.map(({ due, lane }) => [due, page.names[lane]] as [number, string]));
    ({ next } = page);
    pages++;
  }
  return { found, pages };
}

test.each([1, 500])(
  "due-lanes tells when messages fall due in which lane, in pages of %i",
  async (step) => {
    const queue = await newMoves();
    const old = `R2345678\x03${"\0".repeat(7)}old`;
    await queue.seed({
      timeouts: [
        inLane("a", 1000.5, "acme"),
        inLane("b", 2000, "bolt"),
        message("c", 2000).delayed,
        [old, 2500],
        ["foreign", 2600],
        ["", 2700],
        inLane("d", 3000, "acme"),
        inLane("e", 3001, "late"),
      ],
    });
    const before = await queue.snapshot();
    expect((await dueIn(queue, dueLanes, 3000, step)).found).toEqual([
      [1000.5, "acme"],
      [2000, "bolt"],
      [2000, ""],
      [2500, ""],
      [2600, ""],
      [2700, ""],
      [3000, "acme"],
    ]);
    expect(await queue.snapshot()).toEqual(before);
  },
);

test("due-lanes reads a herd in pages, each message once, also if some leave meanwhile", async () => {
  const queue = await newMoves();
  const lanes = ["acme", "bolt", "coil"];
  const herd = Array.from({ length: 330 }, (_, i) =>
    inLane(
      String.fromCharCode(33 + (i % 90)).repeat(1 + Math.floor(i / 90)),
      5000,
      lanes[i % 3] ?? "",
    ),
  );
  await queue.seed({ timeouts: [message("1", 1000).delayed, message("2", 1001).delayed, ...herd] });
  const { found, pages } = await dueIn(queue, dueLanes, 9000, 100);
  expect(pages).toBe(4);
  expect(found).toHaveLength(332);
  for (const lane of lanes) expect(found.filter(([, name]) => name === lane)).toHaveLength(110);
  const { redis, keys } = queue;
  const first = await run(redis, dueLanes, keys, { score: "", skip: 0, latest: 9000, step: 100 });
  await redis.zremrangebyrank(keys.timeouts, 0, 1);
  const { score = "", skip = 0 } = first.next ?? {};
  const second = await run(redis, dueLanes, keys, { score, skip, latest: 9000, step: 1000 });
  expect(first.rows.length + second.rows.length).toBe(332);
  expect(second.next).toBeUndefined();
});

test("due-lanes ends a page early whose messages are large", async () => {
  const queue = await newMoves();
  const large = Array.from({ length: 120 }, (_, i) =>
    inLane(`${i}`.padStart(9000, "x"), i, "acme"),
  );
  await queue.seed({ timeouts: large });
  expect(await dueIn(queue, dueLanes, 9000, 500)).toEqual({
    found: large.map(([, due]) => [due, "acme"]),
    pages: 3,
  });
});

/** A retry of a message in a lane. */
const retry = (payload: string, lane: string) => {
  const trailer = lane === "" ? "" : asText(packTrailer({ lane }));
  return retryFor(message(payload, 100), "g", 2, trailer);
};

test("retry-lanes tells when retries fall due in which lane, but for those that wait for a turn", async () => {
  const queue = await newMoves();
  const retries = [retry("a", "acme"), retry("b", ""), retry("c", "bolt"), retry("d", "acme")];
  await queue.seed({
    retries: [
      ...retries.slice(0, 3).map(({ name }, i) => [name, 1000 + i] as const),
      ["no such", 1500],
      [retries[3]?.name ?? "", 9e15 + 1000],
    ],
    retrying: Object.fromEntries(retries.map(({ name, value }) => [name, value])),
  });
  const before = await queue.snapshot();
  expect((await dueIn(queue, retryLanes, 8e15, 2)).found).toEqual([
    [1000, "acme"],
    [1001, ""],
    [1002, "bolt"],
    [1500, ""],
  ]);
  expect(await queue.snapshot()).toEqual(before);
});

test("used-rates tells what the queue and lanes have used up, in messages", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  const now = NOW * 1000;
  const used = (shares = 1, most = 10) =>
    run(redis, scriptAt(NOW, usedRates), keys, { shares, most });
  expect(await used()).toEqual({ now: NOW, queue: 0, lanes: [] });
  await queue.seed({
    flow: {
      kind: "lanes",
      step: "1000",
      burst: "50",
      arrival: `${now + 12_000}`,
      lane: "20000 5 1 0",
      "lane:b": "0 0 1 0",
      "lane:c": "500 100 1 0",
    },
    lanePaces: [
      ["a", now + 30_000],
      ["b", now + 30_000],
      ["c", now + 30_000],
      ["over", now - 1],
    ],
  });
  const before = await queue.snapshot();
  const lanes = [
    { lane: "a", used: 1.5 },
    { lane: "c", used: 60 },
  ];
  expect(await used()).toEqual({ now: NOW, queue: 12, lanes });
  expect(await used(4, 1)).toEqual({ now: NOW, queue: 3, lanes: lanes.slice(0, 1) });
  expect(await queue.snapshot()).toEqual(before);
});

test("held-lanes tells which lanes are held, and until when", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  const held = Array.from({ length: 700 }, (_, i) => [`hold:lane ${i}`, `${NOW + 1 + i}`] as const);
  await queue.seed({
    flow: {
      kind: "lanes",
      holds: `${NOW + 1000}`,
      "hold:over": `${NOW}`,
      "hold:": `${NOW + 5}`,
      "pin:gold": '0 0 3 2 {"weight":3,"concurrency":2}',
      "pin:": 'paused {"paused":true}',
      ...Object.fromEntries(held),
    },
  });
  const found = new Map<string, number>();
  let cursor = "0";
  do {
    const page = await run(redis, scriptAt(NOW, heldLanes), keys, { cursor });
    for (const { lane, heldUntil } of page.lanes) found.set(lane, heldUntil);
    ({ cursor } = page);
  } while (cursor !== "0");
  const expected = held.map(([field], i) => [field.slice(5), NOW + 1 + i] as const);
  expect(found).toEqual(new Map([["", NOW + 5], ...expected]));
});

/** What says that an entry is in hand. */
const hand = (lane: string, id = "") => `${String.fromCharCode(lane.length)}${lane}${id}`;

test.each([1, 2, 50])(
  "hand-page counts what is in hand of each lane, in pages of %i, and changes nothing",
  async (step) => {
    const queue = await newMoves();
    const { redis, keys } = queue;
    const ids: string[] = [];
    for (let i = 0; i < 8; i++) ids.push((await redis.xadd(keys.stream, "*", "p", `${i}`)) ?? "");
    await redis.xgroup("CREATE", keys.stream, "g", "0");
    // The first four are in flight, and one of them is settled; one of the others was deleted by somebody.
    await redis.xreadgroup("GROUP", "g", "c", "COUNT", 4, "STREAMS", keys.stream, ">");
    await redis.xack(keys.stream, "g", ids[1] ?? "");
    const all = [
      ...ids.slice(0, 3).map((id) => hand("acme", id)),
      hand("", ids[3]),
      hand("gone", ids[1]),
      ...ids.slice(4).map((id) => hand("b", id)),
      "",
      "foreign",
      hand("x", "no id"),
    ];
    await redis.zadd(keys.hands, ...all.flatMap((member) => [0, member]));
    const before = await redis.zrange(keys.hands, "0", "-1");
    const found: unknown[] = [];
    let from: Buffer | undefined = Buffer.alloc(0);
    while (from !== undefined) {
      const args: { from: Buffer; step: number } = { from, step };
      const page: ReturnType<typeof handPage.reply> = await run(redis, handPage, keys, args);
      expect(page.lanes.length).toBeLessThanOrEqual(step);
      found.push(...page.lanes.map(({ lane, running }) => [lane, running]));
      from = page.next;
    }
    expect(found).toEqual([
      ["", 1],
      ["b", 4],
      ["acme", 2],
    ]);
    expect(await redis.zrange(keys.hands, "0", "-1")).toEqual(before);
    await redis.del(keys.stream);
    const none = await run(redis, handPage, keys, { from: "", step: 50 });
    expect(none).toEqual({ lanes: [], next: undefined });
  },
);
