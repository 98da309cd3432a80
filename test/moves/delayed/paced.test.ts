import { describe, expect, test } from "vitest";
import { pacedSweep, pacedTransfer, sweep, transfer } from "../../../src/lua/delayed/transfer.ts";
import { run } from "../../../src/lua/script.ts";
import { message, newMoves, retryFor, type Moves } from "../../helpers/moves.ts";
import { callsOf } from "../../helpers/calls.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { scriptAt } from "../../helpers/script-at.ts";

const NOW = 5_000_000_000_000;
const DUE = 1_000_000;

/** `count` messages that have been due for long. */
const overdue = (count: number, from = DUE) =>
  Array.from({ length: count }, (_, i) => message(`m${String(i).padStart(3, "0")}`, from + i));

/** Ten messages a second, `burst` at once. */
const tenPerSecond = (burst: number, arrival = 0) => ({
  kind: "paced",
  step: "100000",
  burst: String(burst),
  arrival: String(arrival * 1000),
});

interface MoveOptions {
  readonly limit?: number;
  readonly grace?: number;
  readonly shares?: number;
  readonly claim?: number;
}

function moveAt(
  { redis, keys }: Moves,
  script: typeof pacedTransfer.list,
  instant: number,
  { limit = 100, grace = 0, shares = 1, claim = 0 }: MoveOptions = {},
) {
  const args = {
    limit,
    grace,
    claim,
    task: "task",
    known: 0,
    makes: 1,
    mark: 0,
    shares,
    arriving: "",
  };
  return run(redis, scriptAt(instant, script), keys, args);
}

const all = [
  ["transfer", pacedTransfer.list],
  ["transfer to the stream", pacedTransfer.stream],
  ["sweep", pacedSweep.list],
  ["sweep to the stream", pacedSweep.stream],
] as const;

describe.each(all)("%s at a rate", (what, script) => {
  test("after a while the burst may go, then one message each tenth of a second", async () => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: overdue(30).map(({ delayed }) => delayed),
      flow: tenPerSecond(3),
    });
    expect(await moveAt(queue, script, NOW)).toMatchObject({ moved: 3, next: NOW + 100 });
    expect(await moveAt(queue, script, NOW)).toMatchObject({ moved: 0, next: NOW + 100 });
    expect(await moveAt(queue, script, NOW + 99.9)).toMatchObject({ moved: 0, next: NOW + 100 });
    expect(await moveAt(queue, script, NOW + 100)).toMatchObject({ moved: 1, next: NOW + 200 });
    expect(await moveAt(queue, script, NOW + 250)).toMatchObject({ moved: 1, next: NOW + 300 });
    // Late, it gets what it has missed, but no more than the burst.
    expect(await moveAt(queue, script, NOW + 600)).toMatchObject({ moved: 3, next: NOW + 700 });
    expect(await queue.redis.zcard(queue.keys.timeouts)).toBe(22);
  });

  test("in every window at most the burst and what falls to the window, however often it is asked", async () => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: overdue(80).map(({ delayed }) => delayed),
      flow: tenPerSecond(4),
    });
    const moved: number[] = [];
    for (let at = 0, i = 0; moved.length < 60; at += [7, 31, 3, 120, 55, 400][i++ % 6]!) {
      const reply = await moveAt(queue, script, NOW + at);
      for (let k = 0; k < reply.moved; k++) moved.push(at);
    }
    for (const [i, first] of moved.entries()) {
      for (const [k, last] of moved.slice(i).entries()) {
        expect(k + 1).toBeLessThanOrEqual(4 + (last - first) / 100 + 1e-6);
      }
    }
  });

  test("a server's clock that was set back holds nothing up for longer than the burst takes", async () => {
    const queue = await newMoves();
    const flow = tenPerSecond(3, NOW + 3_600_000);
    await queue.seed({ timeouts: overdue(9).map(({ delayed }) => delayed), flow });
    expect(await moveAt(queue, script, NOW)).toMatchObject({ moved: 0, next: NOW + 100 });
    expect(await moveAt(queue, script, NOW + 300)).toMatchObject({ moved: 3 });
  });

  test("a batch costs two commands more than without a rate, whatever its size", async () => {
    const server = await startOwnServer();
    const plain = { paced: false, flow: {} };
    const both = [plain, { paced: true, flow: { flow: tenPerSecond(1000) } }];
    for (const count of [1, 3, 90]) {
      const sums: number[] = [];
      for (const { paced, flow } of both) {
        const queue = await newMoves(server.url);
        await queue.seed({ timeouts: overdue(count).map(({ delayed }) => delayed), ...flow });
        await queue.redis.config("RESETSTAT");
        const unpaced = {
          transfer,
          sweep,
          "transfer to the stream": transfer,
          "sweep to the stream": sweep,
        };
        const into = what.endsWith("stream") ? "stream" : "list";
        const form = paced ? script : unpaced[what][into];
        expect(await moveAt(queue, form, NOW)).toMatchObject({ moved: count });
        const {
          config: _,
          info: __,
          "config|resetstat": ___,
          ...calls
        } = await callsOf(queue.redis);
        sums.push(Object.values(calls).reduce((sum, one) => sum + one, 0));
      }
      // A sweep of a queue with a rate also asks which of its keys there are.
      const more = what.startsWith("sweep") ? 2 + 3 : 2;
      expect((sums[1] ?? 0) - (sums[0] ?? 0)).toBeLessThanOrEqual(more);
    }
  });

  test("a message that is not due takes nothing of the rate, and its deadline is next", async () => {
    const queue = await newMoves();
    const [first, later] = [message("a", NOW - 5), message("b", NOW + 5)];
    await queue.seed({ timeouts: [first.delayed, later.delayed], flow: tenPerSecond(3) });
    expect(await moveAt(queue, script, NOW)).toMatchObject({
      moved: 1,
      next: NOW + 5,
      isPaced: true,
    });
    expect(await queue.redis.hget(queue.keys.flow, "arrival")).toBe(String((NOW + 100) * 1000));
    expect(await moveAt(queue, script, NOW)).toMatchObject({ moved: 0, next: NOW + 5 });
    expect(await queue.redis.hget(queue.keys.flow, "arrival")).toBe(String((NOW + 100) * 1000));
  });

  test("what is dropped takes nothing of the rate", async () => {
    const queue = await newMoves();
    const unfit = ["x", "y"].map((one) => message(one, DUE, "", { deliverWithin: 10 }));
    await queue.seed({
      timeouts: [...unfit, ...overdue(3, DUE + 10)].map(({ delayed }) => delayed),
      flow: tenPerSecond(2),
    });
    const first = await moveAt(queue, script, NOW);
    expect(first).toMatchObject({ moved: 0, dropped: [{}, {}] });
    expect(first.next).toBeLessThan(NOW);
    expect(await moveAt(queue, script, NOW)).toMatchObject({ moved: 2, next: NOW + 100 });
  });

  test("a large backlog goes in whole batches while the burst lasts", async () => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: overdue(150).map(({ delayed }) => delayed),
      flow: tenPerSecond(120),
    });
    const first = await moveAt(queue, script, NOW);
    expect(first.moved).toBe(100);
    expect(first.next).toBeLessThan(NOW);
    expect(await moveAt(queue, script, NOW)).toMatchObject({ moved: 20, next: NOW + 100 });
  });

  test("a fast rate is looked at again when what falls to ten milliseconds may go", async () => {
    const queue = await newMoves();
    const flow = { kind: "paced", step: "500", burst: "200", arrival: String((NOW + 100) * 1000) };
    await queue.seed({ timeouts: overdue(30).map(({ delayed }) => delayed), flow });
    expect(await moveAt(queue, script, NOW)).toMatchObject({ moved: 0, next: NOW + 10 });
    expect(await moveAt(queue, script, NOW + 10)).toMatchObject({ moved: 20, next: NOW + 20 });
  });

  test("one that stands by moves only what might have gone before", async () => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: overdue(9).map(({ delayed }) => delayed),
      flow: tenPerSecond(1, NOW),
    });
    const grace = 50;
    expect(await moveAt(queue, script, NOW + 40, { grace })).toMatchObject({ moved: 0 });
    expect(await moveAt(queue, script, NOW + 50, { grace })).toMatchObject({ moved: 1 });
  });

  test("each part has its share of the rate", async () => {
    const queue = await newMoves();
    await queue.seed({
      timeouts: overdue(30).map(({ delayed }) => delayed),
      flow: tenPerSecond(8),
    });
    const shares = 4;
    expect(await moveAt(queue, script, NOW, { shares })).toMatchObject({
      moved: 2,
      next: NOW + 400,
    });
    // With more parts than messages in the burst, one.
    expect(await moveAt(queue, script, NOW + 10_000, { shares: 20 })).toMatchObject({ moved: 1 });
  });

  test("the wait for a turn is told apart from lateness", async () => {
    const queue = await newMoves();
    const timeouts = [message("a", NOW - 900).delayed, message("b", NOW - 900).delayed];
    await queue.seed({ timeouts, flow: tenPerSecond(1, NOW - 7) });
    const first = await moveAt(queue, script, NOW);
    expect(first).toMatchObject({ moved: 1, dueSince: NOW - 900, waited: 893 });
  });

  test.each([
    ["nothing", undefined],
    ["a kind of a later release", { ...tenPerSecond(1), kind: "something" }],
    ["foreign bytes", { kind: "paced", step: "no number", burst: "5" }],
  ])("with %s instead of a rate it moves all", async (_what, flow) => {
    const queue = await newMoves();
    const timeouts = overdue(12).map(({ delayed }) => delayed);
    await queue.seed({ timeouts, ...(flow && { flow }) });
    const reply = await moveAt(queue, script, NOW);
    expect(reply).toMatchObject({ moved: 12, next: Infinity });
  });
});

describe("messages and retries", () => {
  test("share the rate, the earliest first", async () => {
    const queue = await newMoves();
    const messages = [message("a", DUE), message("d", DUE + 30)];
    const retries = [DUE + 10, DUE + 20, DUE + 40].map((due, i) => ({
      due,
      ...retryFor(message(`r${i}`, due), "workers", 1),
    }));
    await queue.seed({
      timeouts: messages.map(({ delayed }) => delayed),
      retries: retries.map(({ name, due }) => [name, due] as const),
      retrying: Object.fromEntries(retries.map(({ name, value }) => [name, value])),
      flow: tenPerSecond(3),
    });
    expect(await moveAt(queue, pacedTransfer.stream, NOW)).toMatchObject({
      moved: 3,
      next: NOW + 100,
    });
    expect(await queue.redis.zcard(queue.keys.timeouts)).toBe(1);
    expect(await queue.redis.zcard(queue.keys.retries)).toBe(1);
    expect(await moveAt(queue, pacedTransfer.stream, NOW + 100)).toMatchObject({ moved: 1 });
    expect(await queue.redis.zcard(queue.keys.timeouts)).toBe(0);
    expect(await moveAt(queue, pacedTransfer.stream, NOW + 200)).toMatchObject({
      moved: 1,
      next: Infinity,
    });
  });
});

describe("a transfer that knows of no rate", () => {
  test.each([
    ["transfer", transfer.list, 0],
    ["transfer to the stream, when it claims", transfer.stream, 1],
    ["sweep", sweep.list, 0],
    ["sweep to the stream", sweep.stream, 0],
  ] as const)("%s: moves nothing where there is one, and says so", async (_, script, claim) => {
    const queue = await newMoves();
    const state = { timeouts: overdue(3).map(({ delayed }) => delayed), flow: tenPerSecond(3) };
    await queue.seed(state);
    expect(await moveAt(queue, script, NOW, { claim })).toMatchObject({ moved: 0, isPaced: true });
    expect(await queue.snapshot()).toEqual(state);
  });

  test("a paused queue with a rate moves nothing, and tells both", async () => {
    const queue = await newMoves();
    await queue.seed({ timeouts: [message("a", DUE).delayed], flow: tenPerSecond(3), paused: "1" });
    for (const script of [sweep.list, pacedSweep.list]) {
      const reply = await moveAt(queue, script, NOW);
      expect(reply).toMatchObject({ moved: 0, isPaused: true, isPaced: true, scheduleKeys: 0 });
    }
  });
});

test("of another type, the key is no rate", async () => {
  const queue = await newMoves();
  await queue.redis.set(queue.keys.flow, "not a hash");
  await queue.seed({ timeouts: [message("a", DUE).delayed] });
  expect(await moveAt(queue, pacedTransfer.list, NOW)).toMatchObject({ moved: 1, isPaced: false });
  await queue.seed({ timeouts: [message("b", DUE).delayed] });
  expect(await moveAt(queue, transfer.list, NOW)).toMatchObject({ moved: 1 });
});
