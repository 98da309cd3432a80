import { expect, test } from "vitest";
import { planSchedule } from "../../../src/lua/schedules/plan-schedule.ts";
import { run, type Arguments } from "../../../src/lua/script.ts";
import { packAddress } from "../../../src/queue/message/message.ts";
import { bytes, indexEntry, message, newMoves, type Moves } from "../../helpers/moves.ts";

const NEVER = Number.MAX_SAFE_INTEGER;
const FAR = 5_000_000_000_000;
const ROW = { member: "", deadline: "", key: "", address: "" };

const put = (one: ReturnType<typeof message>) => ({
  ...ROW,
  member: bytes(one.member),
  deadline: one.deadline,
  key: one.key,
});

async function plan(
  { redis, keys }: Moves,
  args: Partial<Arguments<(typeof planSchedule.args)[number]>>,
  rows: readonly Record<keyof typeof ROW, Buffer | string | number>[] = [],
) {
  const all = {
    channel: keys.channel,
    name: "s",
    expected: "",
    record: "aa|new",
    planAt: 2000,
    asOf: NEVER,
    set: "",
    setRevision: "",
    isWaking: 0,
    isOrdinary: 1,
    ownLane: "",
    formerLane: "",
    leftLane: "",
    ...args,
  };
  return await run(redis, planSchedule, keys, all, rows);
}

const [a, b] = [message("a", FAR, "key a"), message("b", FAR + 1, "key b")];

test("places messages with the record, and publishes a new head", async () => {
  const queue = await newMoves();
  expect((await plan(queue, {}, [put(a), put(b)])).outcome).toBe("done");
  expect(await queue.snapshot()).toEqual({
    timeouts: [a.delayed, b.delayed],
    order: [a.address, b.address],
    businessKeys: { "key a": indexEntry(a), "key b": indexEntry(b) },
    schedules: { s: "aa|new" },
    planning: [["s", 2000]],
    channel: [String(FAR)],
  });
  // Sent again, after its reply was lost.
  const before = await queue.snapshot();
  expect((await plan(queue, {}, [put(a), put(b)])).outcome).toBe("done");
  expect(await queue.snapshot()).toEqual(before);
});

test("does nothing by an old record, and returns the one that is there", async () => {
  const queue = await newMoves();
  await queue.seed({ schedules: { s: "bb|held" }, planning: [["s", 1000]] });
  const before = await queue.snapshot();
  for (const expected of ["", "aa"]) {
    const reply = await plan(queue, { expected }, [put(a)]);
    expect(reply).toMatchObject({ outcome: "stale", held: Buffer.from("bb|held") });
  }
  expect(await queue.snapshot()).toEqual(before);
});

test("withdraws messages; a key that goes over to a new message stays", async () => {
  const queue = await newMoves();
  const again = message("c", FAR, "key a");
  await queue.seed({
    timeouts: [a.delayed, b.delayed],
    order: [a.address, b.address],
    businessKeys: { "key a": indexEntry(a), "key b": indexEntry(b) },
    schedules: { s: "aa|old" },
    planning: [["s", 1000]],
  });
  const gone = [a, b].map(({ address }) => ({ ...ROW, address: bytes(address) }));
  const args = { expected: "aa", record: "bb|new", isWaking: 1 };
  expect((await plan(queue, args, [...gone, put(again)])).outcome).toBe("done");
  expect(await queue.snapshot()).toMatchObject({
    timeouts: [again.delayed],
    businessKeys: { "key a": indexEntry(again) },
    schedules: { s: "bb|new" },
    planning: [["s", 2000]],
    channel: ["0"],
  });
});

test("nothing is withdrawn if one has fallen due since the caller decided: it may be ready", async () => {
  const queue = await newMoves();
  const due = message("d", Date.now() - 10, "key d");
  await queue.seed({
    timeouts: [due.delayed, b.delayed],
    schedules: { s: "aa|old" },
    planning: [["s", 1000]],
  });
  const before = await queue.snapshot();
  const rows = [due, b].map(({ address }) => ({ ...ROW, address: bytes(address) }));
  const args = { expected: "aa", record: "bb|new" };
  expect((await plan(queue, { ...args, asOf: due.deadline - 1 }, rows)).outcome).toBe("due");
  expect(await queue.snapshot()).toEqual(before);
  expect((await plan(queue, { ...args, asOf: due.deadline }, rows)).outcome).toBe("done");
  expect(await queue.snapshot()).toEqual({ schedules: { s: "bb|new" }, planning: [["s", 2000]] });
});

test("removes a schedule; and the name of one that is gone", async () => {
  const queue = await newMoves();
  await queue.seed({
    timeouts: [b.delayed],
    schedules: { s: "aa|old" },
    planning: [["s", 1000]],
    running: { s: "1-1" },
  });
  const rows = [{ ...ROW, address: bytes(b.address) }];
  expect((await plan(queue, { expected: "aa", record: "" }, rows)).outcome).toBe("done");
  expect(await queue.snapshot()).toEqual({});
  await queue.seed({ planning: [["s", 1000]] });
  expect((await plan(queue, { record: "" })).outcome).toBe("done");
  expect(await queue.snapshot()).toEqual({});
});

test("is refused on an ordinary queue that was given partitions", async () => {
  const queue = await newMoves();
  await queue.seed({ partitions: "1:4:0:moving:1" });
  await expect(plan(queue, {}, [put(a)])).rejects.toThrow("PARTITIONS 1:4:0:moving:1");
  expect(await queue.snapshot()).toEqual({ partitions: "1:4:0:moving:1" });
});

test("a set that was declared in a later revision refuses an earlier one", async () => {
  const queue = await newMoves();
  await queue.seed({ schedules: { "\0set": "3" } });
  expect((await plan(queue, { set: "set", setRevision: 2 }, [put(a)])).outcome).toBe("outdated");
  expect(await queue.snapshot()).toEqual({ schedules: { "\0set": "3" } });
  expect((await plan(queue, { set: "set", setRevision: 3 }, [put(a)])).outcome).toBe("done");
});

test("survives foreign bytes in its keys", async () => {
  const queue = await newMoves();
  await queue.seed({
    schedules: { s: "\xff\xfe", "\0set": "x" },
    planning: [["s", Infinity]],
    timeouts: [["\x01", 5]],
  });
  const address = packAddress(5, Buffer.alloc(16));
  const rows = [{ ...ROW, address }, put(a)];
  expect((await plan(queue, { set: "set", setRevision: 1 }, rows)).outcome).toBe("done");
});
