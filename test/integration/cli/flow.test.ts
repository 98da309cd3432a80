import { expect, test } from "vitest";
import { cli } from "../../helpers/cli.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newLine } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";

const ofLane = (count: number, lane?: string) =>
  Array.from({ length: count }, (_, i) => ({ payload: i, delay: 0, ...(lane && { lane }) }));

test("flow sets a rate, shows it, and ends it", async () => {
  const name = uniqueName("flow");
  const queue = newLine().getDelayedQueue(name, { transfer: false });
  await queue.offer("a", 0);
  expect((await cli(["flow", name])).stdout).toBe(
    `Queue "${name}" has no flow: no rate, and no lanes.\n`,
  );
  const dry = await cli(["flow", name, "--rate", "50/s", "--dry-run"]);
  expect(dry.stderr).toBe(
    `Would set the flow of queue "${name}" to 50 messages in 1 s. Nothing was changed.\n`,
  );
  expect(await queue.flow.get()).toBeUndefined();
  const set = await cli(["flow", name, "--rate", "50/s", "--burst", "3", "--yes"]);
  expect(set.code).toBe(0);
  expect(await queue.flow.get()).toEqual({ rate: { limit: 50, per: 1000, burst: 3 } });
  expect(JSON.parse((await cli(["flow", name, "--json"])).stdout)).toMatchObject({
    queue: name,
    flow: { rate: { limit: 50, per: 1000, burst: 3 } },
  });
  expect((await cli(["flow", name, "--clear", "--yes"])).code).toBe(0);
  expect(await queue.flow.get()).toBeUndefined();
});

test("flow gives a queue lanes, and changes only what is named", async () => {
  const name = uniqueName("flow");
  const queue = newLine().getDelayedQueue(name, { transfer: false });
  await queue.offer("a", 3_600_000);
  const set = async (...options: string[]) => {
    const { code, stderr } = await cli(["flow", name, ...options, "--yes"]);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    return await queue.flow.get();
  };
  const [ten, twenty] = [
    { limit: 10, per: 1000 },
    { limit: 20, per: 1000 },
  ];
  expect(await set("--lane-rate", "10/s")).toEqual({ lane: { rate: ten } });
  expect(await set("--ahead", "50")).toEqual({ lane: { rate: ten }, ahead: 50 });
  expect(await set("--rate", "20/s")).toEqual({ rate: twenty, lane: { rate: ten }, ahead: 50 });
  const named = { gold: { rate: twenty, weight: 2.5 }, "a=b": { weight: 3 } };
  expect(await set("--lane", "gold=20/s,weight=2.5", "--lane", "a=b=weight=3")).toEqual({
    rate: twenty,
    lane: { rate: ten },
    lanes: named,
    ahead: 50,
  });
  expect((await cli(["flow", name])).stdout).toBe(
    `The flow of queue "${name}": lanes in turns, each 10 messages in 1 s, 2 lanes with limits of their own, together 20 messages in 1 s, 50 ready ahead; 0 messages waiting.\n`,
  );
  expect(await set("--rate", "none", "--lane", "gold=none", "--lane-rate", "none")).toEqual({
    lane: {},
    lanes: { "a=b": { weight: 3 } },
    ahead: 50,
  });
  expect(await set("--concurrency", "5", "--lane-concurrency", "2")).toEqual({
    concurrency: 5,
    lane: { concurrency: 2 },
    lanes: { "a=b": { weight: 3 } },
    ahead: 50,
  });
  expect(await set("--concurrency", "none", "--lane", "a=b=concurrency=4,5/s")).toEqual({
    lane: { concurrency: 2 },
    lanes: { "a=b": { concurrency: 4, rate: { limit: 5, per: 1000 } } },
    ahead: 50,
  });
  expect((await cli(["flow", name])).stdout).toContain("lanes in turns, each 2 in hand, 1 lane");
  expect(await set("--clear")).toBeUndefined();
  expect(await set("--concurrency", "5")).toEqual({ concurrency: 5 });
  expect((await cli(["flow", name])).stdout).toContain("lanes in turns, together 5 in hand;");
  expect(await set("--clear")).toBeUndefined();
  expect(await set("--order", "turns")).toEqual({ order: "turns" });
  expect(await set("--rate", "20/s")).toEqual({ rate: twenty, order: "turns" });
});

test("flow refuses to leave nothing of a flow, and what is no legal flow", async () => {
  const name = uniqueName("flow");
  const queue = newLine().getDelayedQueue(name, { transfer: false });
  await queue.flow.set({ rate: { limit: 5, per: 1000 } });
  const refused = await cli(["flow", name, "--rate", "none", "--yes"]);
  expect(refused).toMatchObject({ code: 2 });
  expect(refused.stderr).toContain("nothing would be left of the flow: give --clear");
  const { stderr } = await cli(["flow", name, "--ahead", "5", "--yes"]);
  expect(stderr).toContain("ahead needs lanes");
  const weighed = await cli(["flow", name, "--lane", "gold=weight=200", "--yes"]);
  expect(weighed.stderr).toContain("weight must be a number from 0.01 to 100");
  expect(await queue.flow.get()).toEqual({ rate: { limit: 5, per: 1000 } });
});

test("flow shows the lanes that wait, those with the most first, and until when they rest", async () => {
  const name = uniqueName("flow");
  const line = newLine();
  const queue = line.getDelayedQueue<number>(name);
  const rate = { limit: 1, per: 3_600_000, burst: 1 };
  await queue.flow.set({ lane: {}, lanes: { slow: { rate } }, ahead: 3 });
  await queue.offerMany([...ofLane(30, "loud"), ...ofLane(9, "slow"), ...ofLane(3)]);
  await eventually(async () => (await queue.flow.state()).waiting === 39);
  const { stdout } = await cli(["flow", name]);
  expect(stdout).toContain(
    "lanes in turns, 1 lane with limits of its own, 3 ready ahead; 39 messages waiting.",
  );
  expect(stdout).toMatch(/LANE +WAITING +GOES ON +OF ITS OWN\n/);
  expect(stdout).toMatch(
    /\nloud +2\d +- +-\nslow +8 +in \d+ min( \d+ s)? +1 message in 1 h, 1 at once\n\(no lane\) +\d +- +-\n$/,
  );
  const few = await cli(["flow", name, "--limit", "1"]);
  expect(few.stdout).not.toContain("slow");
  expect(few.stderr).toContain("There are more lanes. To list them: ");
  const { json } = await cli(["flow", name, "--json"]);
  expect(json).toMatchObject([
    {
      queue: name,
      waiting: 39,
      lanes: [{ lane: "loud" }, { lane: "slow", waiting: 8 }, { lane: "" }],
    },
  ]);
});

test("get and list show the lane and the priority of a message", async () => {
  const name = uniqueName("flow");
  const queue = newLine().getDelayedQueue(name, { transfer: false });
  await queue.offer("a", 3_600_000, { key: "a", lane: "tenant 1", priority: 7 });
  await queue.offer("b", 7_200_000, { key: "b" });
  const { stdout } = await cli(["get", name, "a"]);
  expect(stdout).toMatch(/^ *lane +tenant 1$/m);
  expect(stdout).toMatch(/^ *priority +7$/m);
  const list = await cli(["list", name]);
  expect(list.stdout).toMatch(/DUE +ID +KEY +LANE +PRIORITY\n.* a +tenant 1 +7\n.* b +- +0\n$/);
  const [one] = (await cli(["list", name, "--json"])).json;
  expect(one).toMatchObject({ key: "a", lane: "tenant 1", priority: 7 });
  await queue.cancel("a");
  expect((await cli(["list", name])).stdout).not.toContain("LANE");
});

test.each([
  [["--rate", "50"], "--rate must be such as 50/s, 500/m or 10/250ms"],
  [["--rate", "50/x"], "--rate must be a duration"],
  [["--rate", "0/s"], "--rate must be a whole number between 1"],
  [["--rate", "5/2d"], "--rate must be within 1ms to 1d"],
  [["--rate", "5/s", "--burst", "0"], "--burst must be a whole number between 1"],
  [["--burst", "5"], "--burst needs --rate"],
  [["--rate", "5/s", "--clear"], "--rate and --clear exclude each other"],
  [["--rate", "none", "--burst", "5"], "--burst needs --rate"],
  [["--lane-rate", "5"], "--lane-rate must be such as 50/s"],
  [["--ahead", "50", "--clear"], "--ahead and --clear exclude each other"],
  [["--ahead", "0"], "--ahead must be a whole number between 1"],
  [["--order", "priority"], "--order must be"],
  [["--lane", "gold"], "--lane must be such as gold=20/s, gold=weight=3 or gold=none"],
  [["--lane", "gold="], "--lane must be such as"],
  [["--lane", "=5/s"], "--lane must be such as"],
  [["--lane", "gold=weight=x"], "--lane must be such as"],
  [["--lane", "gold=5/x"], "--lane must be a duration"],
  [["--lane", "gold=concurrency=5000"], "--lane must be a whole number between 1 and 1000"],
  [["--lane-concurrency", "0"], "--lane-concurrency must be a whole number between 1"],
  [["--limit", "1001"], "--limit must be a whole number between 1 and 1000"],
])("flow %j is refused", async (options, message) => {
  const refused = await cli(["flow", "orders", ...options, "--yes"]);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain(message);
});

test("due --rate shows what would become ready, and sets nothing", async () => {
  const name = uniqueName("flow");
  const queue = newLine().getDelayedQueue(name, { transfer: false });
  await queue.offerMany(Array.from({ length: 30 }, (_, i) => ({ payload: i, delay: 3_600_000 })));
  const argv = ["due", name, "--rate", "10/m", "--burst", "1", "--step", "1m", "--count", "70"];
  const { stdout, code } = await cli([...argv, "--json"]);
  expect(code).toBe(0);
  const { spans, endsAt } = JSON.parse(stdout) as {
    spans: { due: number; ready: number; waiting: number }[];
    endsAt: number;
  };
  const busy = spans.filter(({ due, ready }) => due + ready > 0);
  expect(busy.reduce((sum, { due }) => sum + due, 0)).toBe(30);
  expect(busy.reduce((sum, { ready }) => sum + ready, 0)).toBe(30);
  expect(Math.max(...busy.map(({ ready }) => ready))).toBeLessThanOrEqual(11);
  expect(endsAt).toBeGreaterThan(Date.now() + 3_600_000 + 100_000);
  expect((await cli(argv)).stdout).toMatch(/FROM +DUE +READY +WAITING/);
  expect(await queue.flow.get()).toBeUndefined();
  expect((await cli(["due", "--rate", "10/m"])).stderr).toContain("--rate needs a queue");
});

test("flow shows what is in hand of lanes where that is limited, and lanes that are held", async () => {
  const name = uniqueName("flow");
  const queue = newLine().getReliableQueue<number>(name);
  await queue.flow.set({ lane: { concurrency: 2 }, lanes: { free: {} } });
  await queue.flow.hold("held", 3_600_000);
  await queue.offerMany([...ofLane(5, "busy"), ...ofLane(1, "idle")]);
  await eventually(async () => (await queue.stats()).ready === 3);
  const { stdout } = await cli(["flow", name]);
  expect(stdout).toMatch(/LANE +WAITING +IN HAND +GOES ON\n/);
  expect(stdout).toMatch(/\nbusy +3 +2 +.*\nidle +0 +1 +-\nheld +0 +0 +in (1 h|59 min.*)\n$/);
});

test("flow pins lanes, shows what is pinned, and unpins them", async () => {
  const name = uniqueName("flow");
  const queue = newLine().getDelayedQueue(name, { transfer: false });
  await queue.flow.set({ lane: {} });
  await queue.offer("a", 3_600_000);
  const pinned = await cli([
    "flow",
    name,
    "--pin",
    "a=b=paused",
    "--pin",
    "gold=5/s,concurrency=2",
    "--yes",
  ]);
  expect(pinned.code).toBe(0);
  await queue.flow.set({ lane: { weight: 2 } });
  const { lanes } = await queue.flow.state();
  expect(Object.fromEntries(lanes.map(({ lane, pinned: pin }) => [lane, pin]))).toEqual({
    "a=b": { paused: true },
    gold: { rate: { limit: 5, per: 1000 }, concurrency: 2 },
  });
  const { stdout } = await cli(["flow", name]);
  expect(stdout).toMatch(/LANE +WAITING +IN HAND +GOES ON +PINNED\n/);
  expect(stdout).toMatch(/\na=b +0 +- +- +paused\n/);
  expect(stdout).toMatch(/\ngold +0 +0 +- +5 messages in 1 s, 2 in hand\n/);
  const dry = await cli(["flow", name, "--unpin", "a=b", "--dry-run"]);
  expect(dry.stderr).toBe(
    `Would unpin lane "a=b" in the flow of queue "${name}". Nothing was changed.\n`,
  );
  expect((await cli(["flow", name, "--unpin", "a=b", "--unpin", "gold", "--yes"])).code).toBe(0);
  expect((await queue.flow.state()).lanes).toEqual([]);
});

test.each([
  [["--pin", "gold"], "--pin must be such as gold=20/s, gold=weight=3 or gold=paused"],
  [["--pin", "gold=none"], "--pin has no none: give --unpin gold"],
  [["--pin", "gold=paused", "--clear"], "--pin and --clear exclude each other"],
  [["--unpin", "gold", "--rate", "5/s"], "--rate and --unpin exclude each other"],
])("flow refuses %j", async (options, message) => {
  const name = uniqueName("flow");
  await newLine().getDelayedQueue(name, { transfer: false }).flow.set({ lane: {} });
  const { code, stderr } = await cli(["flow", name, ...options, "--yes"]);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});

test("due shows what becomes ready with the flow that is set, and with a rate in place of its own", async () => {
  const name = uniqueName("flow");
  const queue = newLine().getDelayedQueue(name, { transfer: false });
  await queue.offerMany([
    ...ofLane(20, "a").map((one) => ({ ...one, delay: 90_000 })),
    ...ofLane(20, "b").map((one) => ({ ...one, delay: 90_000 })),
  ]);
  const rate = { limit: 10, per: 60_000, burst: 1 };
  await queue.flow.set({ lane: { rate } });
  const spans = ["--at", "now", "--step", "1m", "--count", "6", "--json"];
  const foresee = async (...options: string[]) => {
    const { json } = await cli(["due", name, ...spans, ...options]);
    const [{ spans: all, flow }] = json as [{ spans: { ready: number }[]; flow: unknown }];
    return { flow, ready: all.map(({ ready }) => ready) };
  };
  const present = await foresee("--flow");
  expect(present.flow).toEqual({ lane: { rate } });
  expect(present.ready.reduce((sum, count) => sum + count, 0)).toBe(40);
  expect(Math.max(...present.ready)).toBe(20);
  const both = await foresee("--flow", "--rate", "4/1m");
  expect(both.flow).toEqual({ rate: { limit: 4, per: 60_000 }, lane: { rate } });
  expect(Math.max(...both.ready)).toBeLessThanOrEqual(5);
  expect((await foresee("--rate", "5/s")).flow).toEqual({ rate: { limit: 5, per: 1000 } });
  expect((await cli(["due", "--flow"])).stderr).toContain("--flow needs a queue");
});
