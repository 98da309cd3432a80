import { expect, test } from "vitest";
import { pacedSweep, pacedTransfer } from "../../../src/lua/delayed/transfer.ts";
import { freeSlots, setFlow } from "../../../src/lua/queue/flow.ts";
import { ack } from "../../../src/lua/reliable/deliveries.ts";
import { planSchedule } from "../../../src/lua/schedules/plan-schedule.ts";
import { run } from "../../../src/lua/script.ts";
import { indexEntry, message, newMoves, waitingFor, type Moves } from "../../helpers/moves.ts";
import { scriptAt } from "../../helpers/script-at.ts";

const NOW = 5_000_000_000_000;
const DUE = 1_000_000;
const GROUP = "g";
const LANE = "schedule:s";
const OWN = { [`own:${LANE}`]: "1", [`lane:${LANE}`]: "0 0 1 1", own: "1", slots: "1" };
const ONLY = { kind: "lanes", only: "1", ahead: "1e15", ...OWN };

/** A run of a schedule whose runs wait for each other. */
const runOf = (payload: string, deadline: number, deliverWithin?: number) =>
  message(payload, deadline, `key ${payload}`, {
    lane: LANE,
    deliverWithin,
    occurrence: { schedule: "s", tick: deadline, overlap: "wait" },
  });

const others = (count: number, from = DUE) =>
  Array.from({ length: count }, (_, i) =>
    message(`o${i}`, from + i, "", { lane: `l${i % 3}`, priority: i }),
  );

async function newQueue(messages: readonly ReturnType<typeof message>[], flow = ONLY) {
  const queue = await newMoves();
  await queue.redis.xgroup("CREATE", queue.keys.stream, GROUP, "0", "MKSTREAM");
  await queue.seed({ timeouts: messages.map(({ delayed }) => delayed), flow });
  return queue;
}

const moveAt = ({ redis, keys }: Moves, instant: number, script = pacedTransfer.stream) =>
  run(redis, scriptAt(instant, script), keys, {
    limit: 100,
    grace: 0,
    claim: 0,
    task: "task",
    known: 0,
    makes: 1,
    mark: 0,
    shares: 1,
    arriving: "",
  });

/** The payloads and the field `l` of the entries. */
async function entriesOf({ redis, keys }: Moves): Promise<(string | undefined)[][]> {
  const entries = await redis.xrange(keys.stream, "-", "+");
  return entries.map(([, fields]) => {
    const valueOf = (name: string) =>
      fields.includes(name) ? fields[fields.indexOf(name) + 1] : undefined;
    return [valueOf("p"), valueOf("l")];
  });
}

const settle = async ({ redis, keys }: Moves) => {
  const found = await redis.xreadgroup("GROUP", GROUP, "c", "STREAMS", keys.stream, ">");
  const entries = (found as [string, [string, string[]][]][])[0]?.[1] ?? [];
  const args = { group: GROUP, consumer: "c", heldCount: 10 };
  const rows = entries.map(([entry]) => ({ entry, own: 0 }));
  await run(redis, ack, keys, args, rows);
  await run(redis, freeSlots, keys, { channel: keys.channel }, [{ name: LANE }]);
};

test("one run is in hand, and all others go at once, in their order, without a slot", async () => {
  const runs = [runOf("r1", DUE + 1), runOf("r2", DUE + 2), runOf("r3", DUE + 3)];
  const queue = await newQueue([...others(4), ...runs, message("far", NOW + 60_000)]);
  expect(await moveAt(queue, NOW)).toMatchObject({ moved: 5, next: NOW + 1000 });
  expect(await entriesOf(queue)).toEqual([
    ["r1", "2"],
    ["o0", undefined],
    ["o1", undefined],
    ["o2", undefined],
    ["o3", undefined],
  ]);
  expect(await queue.redis.hlen(queue.keys.room)).toBe(2);
  // Others that come meanwhile; nothing looks at the runs.
  const [late] = others(1, DUE + 10);
  await queue.seed({ timeouts: [late?.delayed ?? ["", 0]] });
  expect(await moveAt(queue, NOW + 1)).toMatchObject({ moved: 1, next: NOW + 1000 });
  await settle(queue);
  expect(await moveAt(queue, NOW + 2)).toMatchObject({ moved: 1 });
  expect((await entriesOf(queue)).map(([payload]) => payload)).toEqual(["r2"]);
});

test("of more than one batch of runs all wait but one", async () => {
  const queue = await newQueue(Array.from({ length: 250 }, (_, i) => runOf(`r${i}`, DUE + i)));
  for (let i = 0; i < 4; i++) await moveAt(queue, NOW + i, pacedSweep.stream);
  expect(await queue.redis.xlen(queue.keys.stream)).toBe(1);
  expect(await queue.redis.hlen(queue.keys.room)).toBe(249);
});

test("with a rate, runs and others use it together, by their deadlines", async () => {
  const flow = { ...ONLY, step: "1000000", burst: "2", arrival: "0" };
  const queue = await newQueue([...others(3, DUE + 1), runOf("r1", DUE)], flow);
  expect(await moveAt(queue, NOW)).toMatchObject({ moved: 2, next: NOW + 1000 });
  expect((await entriesOf(queue)).map(([payload]) => payload)).toEqual(["r1", "o0"]);
  expect(await moveAt(queue, NOW + 1)).toMatchObject({ moved: 0, next: NOW + 1000 });
  expect(await moveAt(queue, NOW + 1000)).toMatchObject({ moved: 1 });
});

test("a run that waits leaves when its time is over and the next one comes, and its key is free", async () => {
  const runs = [runOf("r1", NOW), runOf("r2", NOW + 100, 99), runOf("r3", NOW + 200, 99)];
  const queue = await newQueue(runs);
  await queue.seed({
    businessKeys: Object.fromEntries(runs.map((one) => [one.key, indexEntry(one)])),
  });
  await moveAt(queue, NOW);
  await moveAt(queue, NOW + 100);
  expect(await queue.redis.hlen(queue.keys.room)).toBe(1);
  const reply = await moveAt(queue, NOW + 200);
  expect(reply.dropped).toMatchObject([{ reason: "deliverWithin", key: "key r2" }]);
  expect(await queue.redis.hkeys(queue.keys.room)).toHaveLength(1);
  expect(await queue.redis.hkeys(queue.keys.businessKeys)).toEqual(["key r3"]);
  expect(await queue.redis.hget(queue.keys.dropped, "deliverWithin\0s")).toBe("1");
});

const CLEAR = {
  kind: "none",
  step: 0,
  burst: 0,
  declared: "",
  isEmpty: 0,
  ahead: 100,
  most: 0,
  lane: "0 0 1 0",
  rates: 0,
  slots: 0,
};

test("set-flow leaves these lanes alone, and what each may; without lanes of the user nothing else has turns", async () => {
  const queue = await newQueue([], { ...ONLY, "lane:old": "1 1 1 0" } as typeof ONLY);
  const { redis, keys } = queue;
  const set = async (args: Partial<typeof CLEAR>, rows: { name: string; own: string }[] = []) => {
    await run(
      redis,
      scriptAt(NOW, setFlow),
      keys,
      { channel: keys.channel, ...CLEAR, ...args },
      rows,
    );
    return await redis.hgetall(keys.flow);
  };
  expect(await set({})).toEqual(ONLY);
  const arrival = String(NOW * 1000);
  const paced = { kind: "paced", step: 1000, burst: 5, declared: "text" };
  const rate = { step: "1000", burst: "5", arrival, declared: "text" };
  expect(await set(paced)).toEqual({ ...ONLY, ...rate });
  const lanes = { kind: "lanes", declared: "lanes", ahead: 7, lane: "0 0 1 2", slots: 1 };
  const rows = [
    { name: LANE, own: "0 0 1 5" },
    { name: "x", own: "0 0 1 3" },
  ];
  expect(await set(lanes, rows)).toEqual({
    ...OWN,
    kind: "lanes",
    declared: "lanes",
    ahead: "7",
    lane: "0 0 1 2",
    "lane:x": "0 0 1 3",
  });
  expect(await set({})).toEqual(ONLY);
});

const planning = ({ redis, keys }: Moves, args: object) =>
  run(redis, scriptAt(NOW, planSchedule), keys, {
    channel: keys.channel,
    name: "s",
    expected: "",
    record: "aa|new",
    planAt: 2000,
    asOf: NOW,
    set: "",
    setRevision: "",
    isWaking: 0,
    isOrdinary: 1,
    ownLane: "",
    formerLane: "",
    leftLane: "",
    ...args,
  });

test("plan-schedule gives a schedule its lane, beside a user's, and takes it away", async () => {
  const user = { kind: "paced", step: "1000", burst: "5", arrival: "0", declared: "text" };
  const lanes = { kind: "lanes", ahead: "100", lane: "0 0 1 0", declared: "text" };
  for (const before of [
    undefined,
    user,
    lanes,
    { ...lanes, slots: "1", own: "1", "lane:x": "0 0 1 2" },
  ]) {
    const queue = await newMoves();
    if (before !== undefined) await queue.seed({ flow: before });
    const flowOf = () => queue.redis.hgetall(queue.keys.flow);
    await planning(queue, { ownLane: LANE });
    expect(await flowOf()).toEqual(
      before?.kind === "lanes" ? { ...before, ...OWN } : { ...before, ...ONLY },
    );
    await planning(queue, { ownLane: "schedule:t", name: "t" });
    await planning(queue, { expected: "aa", record: "bb|x", formerLane: LANE });
    expect(await flowOf()).toHaveProperty("slots");
    await planning(queue, { expected: "aa", record: "", name: "t", formerLane: "schedule:t" });
    expect(await flowOf()).toEqual(before ?? {});
  }
});

test("what waits in a lane that is taken away becomes ready, and the queue is what the user made it", async () => {
  const [r1, r2] = [runOf("r1", DUE), runOf("r2", DUE + 1)];
  for (const rate of [{}, { step: "1", burst: "100", arrival: "0" }]) {
    const queue = await newQueue([], { ...ONLY, ...rate });
    const [one, two] = [waitingFor(r1, LANE), waitingFor(r2, LANE)];
    await queue.seed({
      room: { [one.id]: one.kept, [two.id]: two.kept },
      turns: [
        [one.turn, 0],
        [two.turn, 0],
      ],
      lanes: [[LANE, 1e12 + 1]],
      resting: [[LANE, NOW + 900]],
      schedules: { s: "aa|old" },
    });
    await planning(queue, { expected: "aa", formerLane: LANE });
    expect(await moveAt(queue, NOW + 1)).toMatchObject({ moved: 2 });
    const { flow, room, turns, lanes, resting, hands } = queue.keys;
    expect(await queue.redis.exists(room, turns, lanes, resting, hands)).toBe(0);
    const left = await queue.redis.hgetall(flow);
    expect(left).toEqual(
      "step" in rate ? { kind: "paced", ...rate, arrival: left["arrival"] } : {},
    );
  }
});
