import { describe, expect, test } from "vitest";
import { get } from "../../../src/lua/delayed/get.ts";
import { offerKeyed } from "../../../src/lua/delayed/offer-keyed.ts";
import { clearDelayed, remove, sizeOfDelayed } from "../../../src/lua/delayed/remove.ts";
import { reschedule } from "../../../src/lua/delayed/reschedule.ts";
import { pacedSweep, pacedTransfer, sweep, transfer } from "../../../src/lua/delayed/transfer.ts";
import { setFlow } from "../../../src/lua/queue/flow.ts";
import { nextTurn } from "../../../src/lua/queue/next-due.ts";
import { countWaiting, stats } from "../../../src/lua/queue/stats.ts";
import { getRetries } from "../../../src/lua/reliable/retries.ts";
import { run } from "../../../src/lua/script.ts";
import { callsOf } from "../../helpers/calls.ts";
import {
  asText,
  bytes,
  indexEntry,
  message,
  newMoves,
  retryFor,
  STAMP,
  type Message,
  type Moves,
  type QueueState,
} from "../../helpers/moves.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { scriptAt } from "../../helpers/script-at.ts";

const NOW = 5_000_000_000_000;
const DUE = 1_000_000;

interface MoveOptions {
  readonly limit?: number;
  readonly grace?: number;
  readonly claim?: number;
  readonly shares?: number;
  readonly arriving?: Buffer | "";
}

function moveAt(
  { redis, keys }: Moves,
  script: typeof pacedTransfer.list,
  instant: number,
  { limit = 100, grace = 0, claim = 0, shares = 1, arriving = "" }: MoveOptions = {},
) {
  const shared = { shares, arriving };
  const args = { limit, grace, claim, task: "task", known: 0, makes: 1, mark: 0, ...shared };
  return run(redis, scriptAt(instant, script), keys, args);
}

/** A flow with lanes as Redis holds it: what each lane may is `step burst cost`. */
const lanesOf = (flow: Readonly<Record<string, string>> = {}) => ({
  kind: "lanes",
  ahead: "100",
  lane: "0 0 1 0",
  ...flow,
});

/** `count` messages of a lane, due one millisecond after the other. */
const inLane = (
  lane: string,
  count: number,
  { priority, from = DUE }: { priority?: number; from?: number } = {},
): Message[] =>
  Array.from({ length: count }, (_, i) =>
    message(`${lane}${i}`, from + i, "", { lane, ...(priority !== undefined && { priority }) }),
  );

const delayed = (...messages: readonly Message[]): QueueState => ({
  timeouts: messages.map((one) => one.delayed),
});

/** What is ready, in order: in the LIST, or in the stream. */
async function readyIn({ redis, keys }: Moves): Promise<string[]> {
  if ((await redis.exists(keys.stream)) === 0) return await redis.lrange(keys.ready, 0, -1);
  const entries = await redis.xrange(keys.stream, "-", "+");
  return entries.map(([, fields]) => fields[fields.indexOf("p") + 1] ?? "");
}

const take = async ({ redis, keys }: Moves, count: number) =>
  (await redis.lpop(keys.ready, count)) ?? [];

const address = ({ address: text }: Message) => bytes(text);

const all = [
  ["transfer", pacedTransfer.list],
  ["transfer to the stream", pacedTransfer.stream],
  ["sweep", pacedSweep.list],
  ["sweep to the stream", pacedSweep.stream],
] as const;

describe.each(all)("%s in turns", (_, script) => {
  test("lanes take turns, as far as messages may be ready, and the rest waits", async () => {
    const queue = await newMoves();
    const few = inLane("b", 3, { from: DUE + 500 });
    await queue.seed({ ...delayed(...inLane("a", 9), ...few), flow: lanesOf({ ahead: "5" }) });
    expect(await moveAt(queue, script, NOW)).toMatchObject({ moved: 5, next: NOW + 5 });
    expect(await readyIn(queue)).toEqual(["a0", "b0", "a1", "b1", "a2"]);
    expect(await queue.redis.zcard(queue.keys.timeouts)).toBe(0);
    expect(await queue.redis.hlen(queue.keys.room)).toBe(7);
    expect(await run(queue.redis, sizeOfDelayed, queue.keys, {})).toBe(7);
    expect(await run(queue.redis, countWaiting, queue.keys, {})).toBe(7);
  });

  test("what a message has collected takes one turn", async () => {
    const queue = await newMoves();
    const collected = ["a", "b"].map((payload) => Buffer.from(payload));
    const several = message("c", DUE, "", { lane: "x", collected });
    await queue.seed({ ...delayed(several, ...inLane("y", 2)), flow: lanesOf({ ahead: "2" }) });
    expect(await moveAt(queue, script, NOW)).toMatchObject({ moved: 2 });
    const isList = await queue.redis.exists(queue.keys.ready);
    expect(await readyIn(queue)).toEqual(isList === 1 ? ["a", "b", "c", "y0"] : ["c", "y0"]);
    expect(await queue.redis.hlen(queue.keys.room)).toBe(1);
  });

  test("within a lane the higher priority is first, then the earlier deadline", async () => {
    const queue = await newMoves();
    const urgent = inLane("u", 2, { priority: 10, from: DUE + 300 });
    const low = inLane("l", 2, { priority: -10 });
    const usual = inLane("n", 2, { from: DUE + 100 });
    const one = [...low, ...usual, ...urgent].map(({ payload, deadline }) =>
      message(payload, deadline, "", {
        lane: "one",
        ...(payload.startsWith("n") ? {} : { priority: payload.startsWith("u") ? 10 : -10 }),
      }),
    );
    await queue.seed({ ...delayed(...one), flow: lanesOf() });
    expect(await moveAt(queue, script, NOW)).toMatchObject({ moved: 6 });
    expect(await readyIn(queue)).toEqual(["u0", "u1", "n0", "n1", "l0", "l1"]);
  });

  test("once nobody waits any more, nothing of the turns stays", async () => {
    const queue = await newMoves();
    await queue.seed({
      ...delayed(...inLane("a", 3), ...inLane("b", 3, { priority: 1 })),
      flow: lanesOf({ ahead: "4" }),
    });
    await moveAt(queue, script, NOW);
    await queue.redis.del(queue.keys.ready, queue.keys.stream);
    expect(await moveAt(queue, script, NOW + 5)).toMatchObject({ moved: 2, next: Infinity });
    const { keys, redis } = queue;
    const { room, turns, lanes, resting, lanePaces } = keys;
    expect(await redis.exists(room, turns, lanes, resting, lanePaces)).toBe(0);
    expect(await redis.hgetall(keys.flow)).toEqual(lanesOf({ ahead: "4" }));
  });

  test("a rate of a lane lets it rest, and the others go on", async () => {
    const queue = await newMoves();
    // Ten messages a second, two at once.
    const flow = lanesOf({ "lane:a": "100000 2 1 0", own: "1", rates: "1" });
    await queue.seed({ ...delayed(...inLane("a", 5), ...inLane("b", 4)), flow });
    expect(await moveAt(queue, script, NOW)).toMatchObject({ moved: 6, next: NOW + 100 });
    expect(await readyIn(queue)).toEqual(["a0", "b0", "a1", "b1", "b2", "b3"]);
    expect(await moveAt(queue, script, NOW + 99)).toMatchObject({ moved: 0, next: NOW + 100 });
    expect(await moveAt(queue, script, NOW + 100)).toMatchObject({ moved: 1, next: NOW + 200 });
    // After a while the burst may go, and no more.
    expect(await moveAt(queue, script, NOW + 900)).toMatchObject({ moved: 2, next: Infinity });
  });
});

test("a partition has its share of what may be ready, but at least one", async () => {
  for (const [shares, moved] of [
    [2, 2],
    [9, 1],
  ] as const) {
    const queue = await newMoves();
    await queue.seed({ ...delayed(...inLane("a", 9)), flow: lanesOf({ ahead: "5" }) });
    expect(await moveAt(queue, pacedTransfer.list, NOW, { shares })).toMatchObject({ moved });
    const straight = await newMoves();
    await straight.seed({ ...delayed(...inLane("a", moved)), flow: lanesOf({ ahead: "5" }) });
    await moveAt(straight, pacedTransfer.list, NOW, { shares });
    expect(await readyIn(straight)).toHaveLength(moved);
    expect(await straight.redis.exists(straight.keys.turns)).toBe(0);
  }
});

/** The buckets of these messages arrive from another partition. */
const arrivingWith = (messages: readonly Message[]) => {
  const buckets = Buffer.alloc(1024);
  for (const { id } of messages) {
    const [high = 0, low = 0] = bytes(id.slice(-2));
    buckets[(high % 4) * 256 + low] = 1;
  }
  return buckets;
};

describe.each([
  ["rates", { lane: "1000 50 1 0", rates: "1" }],
  ["slots", { lane: "0 0 1 9", slots: "1" }],
])("while the number of partitions changes, with %s", (_, flow) => {
  const [a, b] = [inLane("a", 2), inLane("b", 2)];
  const nameless = [message("x", DUE), message("y", DUE)];
  const arriving = arrivingWith([...a, ...nameless]);

  test("a lane that arrives has no turns until the end, and the others go on", async () => {
    const queue = await newMoves();
    const script = pacedTransfer.stream;
    await queue.redis.xgroup("CREATE", queue.keys.stream, "g", "0", "MKSTREAM");
    await queue.seed({ ...delayed(...a, ...b, ...nameless), flow: lanesOf(flow) });
    await moveAt(queue, script, NOW, { shares: 5, arriving });
    // Messages without a lane are in all partitions.
    expect((await readyIn(queue)).toSorted()).toEqual(["b0", "b1", "x", "y"]);
    expect(await moveAt(queue, script, NOW + 999, { shares: 5, arriving })).toMatchObject({
      moved: 0,
      next: NOW + 1000,
    });
    expect(await moveAt(queue, script, NOW + 1000, { shares: 5, arriving })).toMatchObject({
      moved: 0,
      next: NOW + 2000,
    });
    await moveAt(queue, script, NOW + 2000, { shares: 3 });
    expect((await readyIn(queue)).toSorted()).toEqual(["a0", "a1", "b0", "b1", "x", "y"]);
  });

  test("nor does it go straight", async () => {
    const queue = await newMoves();
    await queue.redis.xgroup("CREATE", queue.keys.stream, "g", "0", "MKSTREAM");
    await queue.seed({ ...delayed(...a), flow: lanesOf(flow) });
    await moveAt(queue, pacedTransfer.stream, NOW, { shares: 5, arriving });
    expect(await readyIn(queue)).toEqual([]);
  });
});

test("lanes without limits have turns wherever they are", async () => {
  const queue = await newMoves();
  const a = inLane("a", 2, { priority: 1 });
  await queue.seed({ ...delayed(...a), flow: lanesOf() });
  const arriving = arrivingWith(a);
  await moveAt(queue, pacedTransfer.list, NOW, { shares: 5, arriving });
  expect(await readyIn(queue)).toEqual(["a0", "a1"]);
});

test("a weight gives a lane more turns", async () => {
  const queue = await newMoves();
  const flow = lanesOf({ ahead: "20", "lane:gold": `0 0 ${1 / 3} 0`, own: "1" });
  await queue.seed({ ...delayed(...inLane("gold", 40), ...inLane("z", 40)), flow });
  await moveAt(queue, pacedTransfer.list, NOW);
  const gold = (await readyIn(queue)).filter((payload) => payload.startsWith("gold"));
  expect(gold).toHaveLength(15);
});

test("a lane that comes later begins where the others are, and does not make up for the time before", async () => {
  const queue = await newMoves();
  await queue.seed({ ...delayed(...inLane("a", 30)), flow: lanesOf({ ahead: "10" }) });
  await moveAt(queue, pacedTransfer.list, NOW);
  await queue.seed(delayed(...inLane("b", 30)));
  await take(queue, 10);
  await moveAt(queue, pacedTransfer.list, NOW + 10);
  const ready = await readyIn(queue);
  const counts = ["a", "b"].map((lane) => ready.filter((one) => one.startsWith(lane)).length);
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(2);
});

test("a lane that has rested goes on where it was: all get their share of the queue's rate", async () => {
  const queue = await newMoves();
  // The queue 120 a second, each lane 30 a second: six lanes share what the queue has.
  const step = String(1_000_000 / 120);
  const flow = lanesOf({
    ahead: "1000000",
    step,
    burst: "12",
    lane: `${1_000_000 / 30} 3 1 0`,
    rates: "1",
  });
  const names = ["a", "b", "c", "d", "e", "f"];
  for (const lane of names) await queue.seed({ ...delayed(...inLane(lane, 90)), flow });
  for (let at = 0, i = 0; at < 3000 && i < 5000; i++) {
    const { next } = await moveAt(queue, pacedTransfer.list, NOW + at);
    at = Math.max(at + 1, Math.ceil(next - NOW));
  }
  const ready = (await readyIn(queue)).slice(0, 360);
  const counts = names.map((lane) => ready.filter((one) => one.startsWith(lane)).length);
  expect(ready).toHaveLength(360);
  for (const count of counts) expect(Math.abs(count - 60)).toBeLessThanOrEqual(2);
});

test("the queue's rate is kept, too, and what does not go gives its part back", async () => {
  const queue = await newMoves();
  const flow = lanesOf({ step: "100000", burst: "3" });
  await queue.seed({ ...delayed(...inLane("a", 4), ...inLane("b", 4)), flow });
  expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 3, next: NOW + 100 });
  expect(await moveAt(queue, pacedTransfer.list, NOW + 250)).toMatchObject({
    moved: 2,
    next: NOW + 300,
    waited: NOW + 100 - STAMP / 1000,
  });
});

test("lanes whose rate is used up hide no lane that may go", async () => {
  const queue = await newMoves();
  const flow = lanesOf({ ahead: "1", "lane:a": "1000000 1 1 0", own: "1", rates: "1" });
  await queue.seed({ ...delayed(...inLane("a", 1)), flow });
  await moveAt(queue, pacedTransfer.list, NOW);
  await take(queue, 1);
  await queue.seed(delayed(...inLane("a", 2, { from: DUE + 5 }), ...inLane("b", 1)));
  expect(await moveAt(queue, pacedTransfer.list, NOW + 1)).toMatchObject({ next: NOW + 1 });
  await moveAt(queue, pacedTransfer.list, NOW + 1);
  expect(await readyIn(queue)).toEqual(["b0"]);
});

test("as long as nobody takes, it looks ever more rarely", async () => {
  const queue = await newMoves();
  await queue.seed({ ...delayed(...inLane("a", 4)), flow: lanesOf({ ahead: "1" }) });
  const pauses: number[] = [];
  for (let at = NOW, i = 0; i < 8; i++) {
    const { next } = await moveAt(queue, pacedTransfer.list, at);
    pauses.push(next - at);
    at = next;
  }
  expect(pauses).toEqual([5, 10, 20, 40, 80, 100, 100, 100]);
  await take(queue, 1);
  const at = NOW + 10_000;
  expect(await moveAt(queue, pacedTransfer.list, at)).toMatchObject({ moved: 1, next: at + 5 });
});

const total = (calls: Readonly<Record<string, number>>) =>
  Object.values(calls).reduce((sum, count) => sum + count, 0);

describe("straight", () => {
  test.each([
    ["list", pacedTransfer.list, transfer.list],
    ["stream", pacedTransfer.stream, transfer.stream],
  ] as const)(
    "while nobody waits a batch into the %s costs a few looks more, and writes nothing more",
    async (_, script, plain) => {
      const server = await startOwnServer();
      const commands = async (flow: QueueState, form: typeof script) => {
        const queue = await newMoves(server.url);
        await queue.redis.xgroup("CREATE", queue.keys.stream, "g", "$", "MKSTREAM");
        if (form.keys.length > 0 && script === pacedTransfer.list)
          await queue.redis.del(queue.keys.stream);
        await queue.seed({ ...delayed(...inLane("a", 3)), ...flow });
        const before = await callsOf(queue.redis);
        expect(await moveAt(queue, form, NOW)).toMatchObject({ moved: 3 });
        const after = await callsOf(queue.redis);
        const made = Object.keys(after).map((name) => [
          name,
          (after[name] ?? 0) - (before[name] ?? 0),
        ]);
        return Object.fromEntries(made.filter(([name, count]) => count !== 0 && name !== "info"));
      };
      const without = await commands({}, plain);
      const withLanes = await commands({ flow: lanesOf() }, script);
      expect(total(withLanes) - total(without)).toBeLessThanOrEqual(5);
      for (const name of ["hset", "zadd", "hdel", "unlink"]) {
        expect(withLanes[name] ?? 0).toBe(without[name] ?? 0);
      }
    },
  );

  test("what lanes may goes straight, and is used up; what they may not has turns", async () => {
    const queue = await newMoves();
    const flow = lanesOf({ lane: "100000 2 1 0", rates: "1" });
    await queue.seed({ ...delayed(...inLane("a", 2), ...inLane("b", 1)), flow });
    expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 3 });
    expect(await queue.redis.zcard(queue.keys.lanePaces)).toBe(2);
    expect(await queue.redis.hget(queue.keys.flow, "turn")).toBeNull();
    await queue.seed(delayed(...inLane("b", 2, { from: DUE + 10 })));
    expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({
      moved: 1,
      next: NOW + 100,
    });
    expect(await queue.redis.hlen(queue.keys.room)).toBe(1);
    expect(await queue.redis.ttl(queue.keys.lanePaces)).toBeGreaterThan(0);
  });

  test("a message with conditions has a turn, where it takes nothing if it is dropped", async () => {
    const queue = await newMoves();
    const onlyIf = { key: "missing", exists: true };
    const guarded = message("no", DUE, "", { lane: "a", onlyIf });
    const flow = lanesOf({ lane: "100000 1 1 0", rates: "1" });
    await queue.seed({ ...delayed(guarded), flow });
    expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 0 });
    await queue.seed(delayed(...inLane("a", 1)));
    expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 1 });
  });

  test("it never lets more be ready than may be", async () => {
    const queue = await newMoves();
    await queue.seed({
      ready: ["x", "y"],
      ...delayed(...inLane("a", 3)),
      flow: lanesOf({ ahead: "4" }),
    });
    expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 2 });
    expect(await queue.redis.llen(queue.keys.ready)).toBe(4);
  });
});

describe("retries", () => {
  const first = message("first", DUE, "", { lane: "a" });
  const again = message("again", DUE + 1, "", { lane: "a" });
  const retry = retryFor(again, "g", 2, asText(trailerOf("a")));

  test("queue again, at the place of their first deadline, and keep it in their group", async () => {
    const queue = await newMoves();
    const later = message("later", DUE + 2, "", { lane: "a" });
    await queue.redis.xgroup("CREATE", queue.keys.stream, "g", "$", "MKSTREAM");
    await queue.seed({
      ...delayed(first, later),
      retries: [[retry.name, DUE + 50]],
      retrying: { [retry.name]: retry.value },
      flow: lanesOf({ ahead: "2" }),
    });
    expect(await moveAt(queue, pacedTransfer.stream, NOW)).toMatchObject({ moved: 2 });
    expect(await readyIn(queue)).toEqual(["first", "again"]);
    expect(await queue.redis.exists(queue.keys.retries, queue.keys.retrying)).toBe(0);
    const [, fields] = (await queue.redis.xrange(queue.keys.stream, "-", "+"))[1] ?? [];
    expect(fields).toEqual(expect.arrayContaining(["n", "2", "g", "g"]));
  });

  test("of which the stream, or the message, was deleted meanwhile: none is lost, and no name stays", async () => {
    const queue = await newMoves();
    const { redis, keys } = queue;
    const other = message("other", DUE + 2, "", { lane: "b" });
    const gone = retryFor(other, "g", 1, asText(trailerOf("b")));
    await redis.xgroup("CREATE", keys.stream, "g", "$", "MKSTREAM");
    await queue.seed({
      stream: [{ a: "x".repeat(24), p: "ready" }],
      retries: [
        [retry.name, DUE + 50],
        [gone.name, DUE + 60],
      ],
      retrying: { [retry.name]: retry.value, [gone.name]: gone.value },
      flow: lanesOf({ ahead: "1" }),
    });
    expect(await moveAt(queue, pacedTransfer.stream, NOW)).toMatchObject({ moved: 0 });
    await redis.del(keys.stream);
    await redis.hdel(keys.retrying, bytes(gone.name));
    // A process that knows only the plain queue moves it.
    expect(await moveAt(queue, pacedTransfer.list, NOW + 100)).toMatchObject({ moved: 1 });
    expect(await readyIn(queue)).toEqual(["again"]);
    await redis.del(keys.stream);
    await moveAt(queue, pacedTransfer.list, NOW + 200);
    expect(await redis.exists(keys.retries, keys.retrying, keys.turns)).toBe(0);
  });

  test("show when they were due while they wait, and can be cancelled and put off", async () => {
    const queue = await newMoves();
    const { redis, keys } = queue;
    await redis.xgroup("CREATE", keys.stream, "g", "$", "MKSTREAM");
    await queue.seed({
      stream: [{ a: "x".repeat(24), p: "ready" }],
      retries: [[retry.name, DUE + 50]],
      retrying: { [retry.name]: retry.value },
      flow: lanesOf({ ahead: "1" }),
    });
    expect(await moveAt(queue, pacedTransfer.stream, NOW)).toMatchObject({ moved: 0 });
    expect(await run(redis, countWaiting, keys, {})).toBe(1);
    expect(await run(redis, getRetries, keys, { wanted: address(again) })).toMatchObject([
      { due: DUE + 50, attempts: 2 },
    ]);
    const put = (delay: number | "", deadline: number | "") =>
      run(redis, scriptAt(NOW, reschedule), keys, {
        channel: keys.channel,
        id: address(again),
        key: "",
        delay,
        deadline,
      });
    expect(await put("", "")).toMatchObject({ place: "retrying", deadline: DUE + 50 });
    expect(await run(redis, countWaiting, keys, {})).toBe(1);
    expect(await put("", NOW + 5000)).toMatchObject({ deadline: NOW + 5000 });
    expect(await run(redis, countWaiting, keys, {})).toBe(0);
    // Its turn means nothing any more.
    await redis.del(keys.stream);
    expect(await moveAt(queue, pacedTransfer.stream, NOW + 100)).toMatchObject({ moved: 0 });
    expect(await redis.exists(keys.turns, keys.lanes)).toBe(0);
    expect(await moveAt(queue, pacedTransfer.stream, NOW + 5000)).toMatchObject({ moved: 1 });
  });
});

describe("what waits", () => {
  /** A queue in which two messages wait and one is ready; the first that waits has a key. */
  async function waiting() {
    const queue = await newMoves();
    const lane = { lane: "a" };
    const messages = [
      message("0", DUE, "", lane),
      message("1", DUE + 1, "key", lane),
      message("2", DUE + 2, "", lane),
    ] as const;
    await queue.seed({
      ...delayed(...messages),
      businessKeys: { key: indexEntry(messages[1]) },
      flow: lanesOf({ ahead: "1" }),
    });
    expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 1 });
    return { ...queue, messages };
  }

  test("is found by id and key, as what waits", async () => {
    const { redis, keys, messages } = await waiting();
    const rows = [
      { id: "", key: "key" },
      { id: address(messages[2]), key: "" },
      { id: address(messages[0]), key: "" },
    ];
    const { messages: found } = await run(redis, get, keys, { maxBytes: 1e6 }, rows);
    expect(found).toMatchObject([
      { place: "waiting", deadline: DUE + 1 },
      { place: "waiting", deadline: DUE + 2 },
    ]);
  });

  test("is cancelled exactly, with its key, and the last one takes the lanes along", async () => {
    const { redis, keys, messages } = await waiting();
    const cancel = (id: Buffer | "", key: string) => run(redis, remove, keys, {}, [{ id, key }]);
    expect(await cancel("", "key")).toEqual([true]);
    expect(await cancel("", "key")).toEqual([false]);
    expect(await redis.exists(keys.businessKeys)).toBe(0);
    expect(await redis.zcard(keys.turns)).toBe(1);
    expect(await cancel(address(messages[2]), "")).toEqual([true]);
    expect(await cancel(address(messages[0]), "")).toEqual([false]);
    expect(await redis.exists(keys.room, keys.turns, keys.lanes)).toBe(0);
  });

  test("gets a new deadline, and is delayed again; to be due now changes nothing", async () => {
    const { redis, keys, snapshot } = await waiting();
    const put = (delay: number | "") =>
      run(redis, scriptAt(NOW, reschedule), keys, {
        channel: keys.channel,
        id: "",
        key: "key",
        delay,
        deadline: "",
      });
    const before = await snapshot();
    expect(await put("")).toMatchObject({ place: "delayed", deadline: DUE + 1 });
    expect(await snapshot()).toEqual(before);
    expect(await put(500)).toMatchObject({ place: "delayed", deadline: NOW + 500 });
    expect(await redis.hlen(keys.room)).toBe(1);
    expect(await redis.zcard(keys.timeouts)).toBe(1);
    const rows = [{ id: "", key: "key" }];
    const { messages: found } = await run(redis, get, keys, { maxBytes: 1e6 }, rows);
    expect(found).toMatchObject([{ deadline: NOW + 500 }]);
  });

  test.each([
    ["ignore", DUE + 1, "existing"],
    ["replace", NOW + 700, "replaced"],
    ["update", DUE + 1, "updated"],
  ] as const)("holds its key: %s", async (rule, deadline, outcome) => {
    const { redis, keys } = await waiting();
    const { member } = message("new", NOW, "key", { lane: "a" });
    const row = { member: bytes(member), delay: "", deadline: NOW + 700, key: "key", rule };
    const reply = await run(redis, scriptAt(NOW, offerKeyed), keys, { channel: keys.channel }, [
      { ...row, maxWait: "" },
    ]);
    expect(reply.results).toMatchObject([{ deadline, outcome }]);
    const isNew = outcome !== "existing";
    expect(await redis.hlen(keys.room)).toBe(isNew ? 1 : 2);
    expect(await redis.zcard(keys.turns)).toBe(isNew ? 1 : 2);
    expect(await redis.zcard(keys.timeouts)).toBe(isNew ? 1 : 0);
  });

  test("is dropped by clear, and counted", async () => {
    const { redis, keys } = await waiting();
    expect(await run(redis, clearDelayed, keys, {})).toBe(2);
    expect(await redis.exists(keys.room, keys.turns, keys.lanes, keys.businessKeys)).toBe(0);
  });

  test("is counted as waiting; as overdue once the mover should have looked long ago", async () => {
    const { redis, keys } = await waiting();
    const statsAt = (instant: number) =>
      run(redis, scriptAt(instant, stats), keys, { channel: keys.channel, shares: 1 });
    expect(await statsAt(NOW + 500)).toMatchObject({ delayed: 2, waiting: 2, overdue: 0 });
    expect(await statsAt(NOW + 2000)).toMatchObject({ delayed: 2, waiting: 0, overdue: 2 });
  });

  test("is told to those who stand by, who wait for the mover", async () => {
    const { redis, keys, ...queue } = await waiting();
    expect(await run(redis, nextTurn, keys, {})).toBe(NOW + 5);
    await redis.del(keys.ready);
    const at = (instant: number) =>
      moveAt({ redis, keys, ...queue }, pacedTransfer.list, instant, { grace: 50 });
    expect(await at(NOW + 40)).toMatchObject({ moved: 0, next: NOW + 5 });
    expect(await at(NOW + 55)).toMatchObject({ moved: 1 });
  });
});

describe("conditions", () => {
  test("are asked when it is the message's turn, and a dropped one takes nobody's turn", async () => {
    const queue = await newMoves();
    const lane = "a";
    const guarded = message("no", DUE, "", { lane, onlyIf: { key: "missing", exists: true } });
    const late = message("late", NOW - 20, "", { lane, deliverWithin: 50 });
    await queue.seed({
      ready: ["x"],
      ...delayed(guarded, message("yes", DUE + 1, "", { lane }), late),
      flow: lanesOf({ ahead: "1" }),
    });
    expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 0, dropped: [] });
    await take(queue, 1);
    const reply = await moveAt(queue, pacedTransfer.list, NOW + 10);
    expect(reply).toMatchObject({ moved: 0, dropped: [{ reason: "onlyIf" }], next: NOW + 10 });
    expect(await moveAt(queue, pacedTransfer.list, NOW + 10)).toMatchObject({ moved: 1 });
    await take(queue, 1);
    expect(await moveAt(queue, pacedTransfer.list, NOW + 60)).toMatchObject({
      dropped: [{ reason: "deliverWithin" }],
    });
    expect(await queue.redis.exists(queue.keys.room, queue.keys.turns)).toBe(0);
  });
});

test("what is dropped takes nothing of its lane's rate", async () => {
  const queue = await newMoves();
  const onlyIf = { key: "missing", exists: true };
  const unfit = message("no", DUE, "", { lane: "a", onlyIf });
  const flow = lanesOf({ lane: "100000 1 1 0", rates: "1" });
  await queue.seed({ ...delayed(unfit, ...inLane("a", 1, { from: DUE + 1 })), flow });
  const at = NOW + 0.5;
  expect(await moveAt(queue, pacedTransfer.list, at)).toMatchObject({ moved: 0, next: NOW });
  expect(await moveAt(queue, pacedTransfer.list, at)).toMatchObject({ moved: 1 });
});

describe("what is not as it should be", () => {
  test("an offer that was sent again waits once", async () => {
    const queue = await newMoves();
    const [first] = inLane("a", 1);
    const flow = lanesOf({ ahead: "1" });
    await queue.seed({ ready: ["x"], ...delayed(first as Message), flow });
    await moveAt(queue, pacedTransfer.list, NOW);
    await queue.redis.zadd(queue.keys.timeouts, NOW, bytes((first as Message).member));
    await moveAt(queue, pacedTransfer.list, NOW + 1);
    expect(await queue.redis.hlen(queue.keys.room)).toBe(1);
    expect(await queue.redis.zcard(queue.keys.turns)).toBe(1);
    expect(await queue.redis.zcard(queue.keys.timeouts)).toBe(0);
  });

  test("a message with the id of another one that waits is set aside, and so is what cannot be read", async () => {
    const queue = await newMoves();
    const [first] = inLane("a", 1) as [Message];
    const other = bytes(first.member);
    other[other.length - 1] = 0x62;
    await queue.seed({ ready: ["x"], ...delayed(first), flow: lanesOf({ ahead: "1" }) });
    await queue.redis.zadd(queue.keys.timeouts, DUE + 9, other, DUE + 10, "broken");
    expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ quarantined: 2 });
    expect(await queue.redis.llen(queue.keys.unreadable)).toBe(2);
    expect(await queue.redis.hlen(queue.keys.room)).toBe(1);
  });

  test.each(["turns", "lanes"] as const)("if somebody deletes %s, nothing is lost", async (key) => {
    const queue = await newMoves();
    const messages = [...inLane("a", 3), ...inLane("b", 2)];
    await queue.seed({ ready: ["x"], ...delayed(...messages), flow: lanesOf({ ahead: "1" }) });
    await moveAt(queue, pacedTransfer.list, NOW);
    await queue.redis.del(queue.keys[key]);
    const seen: string[] = [];
    for (let at = NOW + 200, i = 0; i < 40; i++, at += 200) {
      seen.push(...(await take(queue, 1)));
      await moveAt(queue, pacedTransfer.list, at);
    }
    expect(seen.toSorted()).toEqual(["a0", "a1", "a2", "b0", "b1", "x"]);
    expect(await queue.redis.exists(queue.keys.room, queue.keys.turns)).toBe(0);
  });

  test("a limit that is no number limits nothing", async () => {
    const queue = await newMoves();
    const flow = lanesOf({
      lane: "rubbish",
      "lane:a": "x y z w",
      own: "1",
      rates: "1",
      ahead: "?",
    });
    await queue.seed({ ...delayed(...inLane("a", 2), ...inLane("b", 2)), flow });
    expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 4 });
  });
});

const setAt = (
  { redis, keys }: Moves,
  instant: number,
  args: Readonly<Record<string, string | number>>,
) =>
  run(redis, scriptAt(instant, setFlow), keys, {
    channel: keys.channel,
    kind: "lanes",
    step: 0,
    burst: 0,
    declared: "text",
    isEmpty: 0,
    ahead: 100,
    lane: "0 0 1 0",
    rates: 0,
    slots: 0,
    most: 0,
    ...args,
  });

/** A queue in whose lanes messages wait and rest. */
async function restingLanes() {
  const queue = await newMoves();
  const flow = lanesOf({ ahead: "2", lane: "1000000 1 1 0", rates: "1" });
  await queue.seed({ ...delayed(...inLane("a", 6), ...inLane("b", 6)), flow });
  expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 2 });
  return queue;
}

describe("another flow", () => {
  test("none: what waits becomes ready in order of turn, and then there is no flow", async () => {
    const queue = await restingLanes();
    await setAt(queue, NOW, { kind: "none", declared: "" });
    expect(await queue.redis.hget(queue.keys.flow, "declared")).toBeNull();
    expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 10 });
    expect((await readyIn(queue)).slice(2, 6)).toEqual(["a1", "b1", "a2", "b2"]);
    const { flow, room, turns, lanes, resting, lanePaces } = queue.keys;
    expect(await queue.redis.exists(flow, room, turns, lanes, resting, lanePaces)).toBe(0);
  });

  test("a rate: what waits obeys it, and then the queue is paced", async () => {
    const queue = await restingLanes();
    await setAt(queue, NOW, { kind: "paced", step: 100_000, burst: 4 });
    expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 4 });
    expect(await queue.redis.hget(queue.keys.flow, "kind")).toBe("lanes");
    expect(await moveAt(queue, pacedTransfer.list, NOW + 1000)).toMatchObject({ moved: 4 });
    expect(await moveAt(queue, pacedTransfer.list, NOW + 2000)).toMatchObject({ moved: 2 });
    expect(await queue.redis.hgetall(queue.keys.flow)).toMatchObject({
      kind: "paced",
      step: "100000",
      burst: "4",
      declared: "text",
    });
    expect(await queue.redis.hexists(queue.keys.flow, "target")).toBe(0);
  });

  test("without lane rates: what lanes have used is forgotten", async () => {
    const queue = await newMoves();
    await queue.seed({
      ...delayed(...inLane("a", 1)),
      flow: lanesOf({ lane: "1000000 1 1 0", rates: "1" }),
    });
    await moveAt(queue, pacedTransfer.list, NOW);
    expect(await queue.redis.exists(queue.keys.lanePaces)).toBe(1);
    await setAt(queue, NOW, { kind: "none", declared: "" });
    expect(await queue.redis.exists(queue.keys.lanePaces, queue.keys.flow)).toBe(0);
  });

  test("other lanes: those that rested try again, with what they used of their rate", async () => {
    const queue = await restingLanes();
    await setAt(queue, NOW, { lane: "1000 1000 1 0", rates: 1 });
    expect(await queue.redis.exists(queue.keys.resting)).toBe(0);
    expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 10 });
  });

  test.each([
    ["transfer", transfer.list],
    ["sweep", sweep.list],
    ["transfer to the stream", transfer.stream],
    ["sweep to the stream", sweep.stream],
  ] as const)("%s, which knows of none, moves nothing", async (_, script) => {
    const queue = await newMoves();
    await queue.seed({ ...delayed(...inLane("a", 2)), flow: lanesOf() });
    const moved = moveAt(queue, script, NOW, { claim: 2 });
    expect(await moved).toMatchObject({ moved: 0, isPaced: true });
    expect(await queue.redis.zcard(queue.keys.timeouts)).toBe(2);
  });
});

/** The bytes behind the payload of a message in a lane. */
function trailerOf(lane: string): Buffer {
  const { member, payload } = message("x", 0, "", { lane });
  return bytes(member).subarray(25 + payload.length);
}
