import { describe, expect, test } from "vitest";
import { IN_PART } from "../../../src/failure.ts";
import { offerKeyed } from "../../../src/lua/delayed/offer-keyed.ts";
import { reschedule } from "../../../src/lua/delayed/reschedule.ts";
import { run } from "../../../src/lua/script.ts";
import { newAclUser } from "../../helpers/acl-user.ts";
import {
  asAddress,
  asMember,
  asText,
  bytes,
  indexEntry,
  message,
  newMoves,
  packRetry,
  retryName,
  STAMP,
  waitingFor,
  type Bytes,
  type Message,
  type Moves,
} from "../../helpers/moves.ts";
import { newRedis } from "../../helpers/redis.ts";

const KEY = "product 7";
const SINCE = STAMP / 1000;
const FAR = 5_000_000_000_000;
/** A cap that limits nothing, in front of marks. */
const NO_CAP = 9e15;

/** The message `own`, which has collected others: each with its own outcome. */
function collecting(own: Message, ...earlier: readonly [one: Message, outcome: number][]): Message {
  const field = (tag: number, value: Bytes) =>
    String.fromCodePoint(tag) + u32(value.length) + value;
  const size = earlier.reduce((sum, [{ payload }]) => sum + payload.length, 0);
  const block = earlier.map(
    ([{ id, payload }, outcome]) =>
      String.fromCodePoint(outcome) + id + u32(payload.length) + payload,
  );
  const trailer = `\xff\x01${field(1, own.key)}${field(11, u32(earlier.length) + u32(size) + block.join(""))}`;
  const member = own.member.slice(0, own.member.length - own.key.length) + trailer;
  return { ...own, member, delayed: [member, own.deadline] };
}

function u32(number: number): Bytes {
  const four = Buffer.alloc(4);
  four.writeUInt32LE(number);
  return asText(four);
}

/** How a key remembers a payload that went before. */
const mark = ({ id }: Message, outcome: number) => String.fromCodePoint(outcome) + id.slice(4, 12);

const rowOf = ({ member, deadline, key }: Message, maxWait: number | "", most: string) => ({
  member: bytes(member),
  delay: "",
  deadline,
  key,
  rule: `collect,${most}`,
  maxWait,
});

const [a, b, c, d] = ["a", "b", "c", "d"].map((payload, i) => message(payload, FAR + i, KEY)) as [
  Message,
  Message,
  Message,
  Message,
];
const ab = collecting(b, [a, 0]);
const abc = collecting(c, [a, 0], [b, 4]);

describe.each([
  { order: "addresses", element: asAddress, isExact: false },
  { order: "members", element: asMember, isExact: true },
] as const)("a LIST of $order", ({ order, element, isExact }) => {
  async function offer(
    { redis, keys }: Moves,
    all: readonly Message[],
    { most = "100,1000", maxWait = "" }: { most?: string; maxWait?: number | "" } = {},
  ) {
    const rows = all.map((one) => rowOf(one, maxWait, most));
    const args = { channel: keys.channel, elementsAre: order };
    return (await run(redis, offerKeyed, keys, args, rows)).results;
  }
  const holding = (one: Message, ...entry: [outcome?: number, ...instants: number[]]) => ({
    timeouts: [one.delayed],
    order: [element(one)],
    businessKeys: { [KEY]: indexEntry(one, ...entry) },
  });
  /** The elements of these messages; in a LIST of addresses, those of replaced ones stay. */
  const orderOf = (gone: readonly Message[], ...there: readonly Message[]) =>
    [...(isExact ? [] : gone), ...there].map(element);

  test("a free key: the message is added as it is", async () => {
    const queue = await newMoves();
    expect(await offer(queue, [a])).toEqual([{ deadline: FAR, outcome: "added" }]);
    expect(await queue.snapshot()).toEqual({ ...holding(a), channel: [String(FAR)] });
  });

  test("a delayed message: the new one takes its place, and has its payload in front", async () => {
    const queue = await newMoves();
    await queue.seed(holding(a));
    expect(await offer(queue, [b])).toEqual([{ deadline: FAR + 1, outcome: "collected" }]);
    const one = { timeouts: [ab.delayed], order: orderOf([a], ab) };
    const entry = indexEntry(b, 4, SINCE);
    expect(await queue.snapshot()).toMatchObject({ ...one, businessKeys: { [KEY]: entry } });

    expect(await offer(queue, [c])).toEqual([{ deadline: FAR + 2, outcome: "collected" }]);
    expect(await queue.snapshot()).toMatchObject({
      timeouts: [abc.delayed],
      order: orderOf([a, ab], abc),
      businessKeys: { [KEY]: indexEntry(c, 4, SINCE) },
    });
  });

  test("what was replaced or updated before is collected with its outcome", async () => {
    const queue = await newMoves();
    await queue.seed(holding(a, 3, SINCE));
    await offer(queue, [b]);
    const { timeouts } = await queue.snapshot();
    expect(timeouts).toEqual([collecting(b, [a, 3]).delayed]);
  });

  test("headers, lane and conditions are those of the last offer, and what was collected stays", async () => {
    const queue = await newMoves();
    const more = { headers: { from: "x" }, lane: "l", deliverWithin: 5000 };
    const first = message("a", FAR, KEY, { headers: { from: "y" }, lane: "m" });
    const second = message("b", FAR, KEY, more);
    await queue.seed(holding(first));
    await offer(queue, [second]);
    const [member = ""] = (await queue.snapshot()).timeouts?.[0] ?? [];
    expect(member.startsWith(second.member)).toBe(true);
    const { member: whole } = collecting(b, [a, 0]);
    const field = whole.slice(whole.indexOf("\x0b"));
    expect(member.slice(second.member.length)).toBe(field);
  });

  test("offers of one script leave one message", async () => {
    const queue = await newMoves();
    expect(await offer(queue, [a, b, c])).toEqual([
      { deadline: FAR, outcome: "added" },
      { deadline: FAR + 1, outcome: "collected" },
      { deadline: FAR + 2, outcome: "collected" },
    ]);
    expect(await queue.snapshot()).toMatchObject({
      timeouts: [abc.delayed],
      order: [element(abc)],
    });
    const other = await newMoves();
    await other.seed(holding(a));
    await offer(other, [b, c]);
    expect(await other.snapshot()).toMatchObject({
      timeouts: [abc.delayed],
      order: orderOf([a], abc),
      businessKeys: { [KEY]: indexEntry(c, 4, SINCE) },
    });
  });

  test("maxWait caps the deadline, and the cap stays with the key", async () => {
    const queue = await newMoves();
    await queue.seed(holding(a));
    const due = SINCE + 1000;
    expect(await offer(queue, [b], { maxWait: 1000 })).toEqual([
      { deadline: due, outcome: "collected" },
    ]);
    expect(await offer(queue, [c])).toEqual([{ deadline: due, outcome: "collected" }]);
    const { businessKeys } = await queue.snapshot();
    const at = { ...c, address: message("c", due).address };
    expect(businessKeys).toEqual({ [KEY]: indexEntry(at, 4, SINCE, due) });
  });

  describe("full", () => {
    test.each([
      { by: "the number of payloads", most: "2,1000" },
      { by: "the bytes of all payloads", most: "100,2" },
    ])("by $by: that one is due at once, and the offer begins the next", async ({ most }) => {
      const queue = await newMoves();
      await queue.seed(holding(a));
      await offer(queue, [b], { most });
      const before = Date.now();
      expect(await offer(queue, [c], { most })).toEqual([{ deadline: FAR + 2, outcome: "added" }]);
      const { timeouts = [], channel, order: elements, businessKeys } = await queue.snapshot();
      const [[member, due] = ["", 0], next] = timeouts;
      expect([member, next]).toEqual([ab.member, c.delayed]);
      expect(due).toBeGreaterThan(before - 60_000);
      expect(due).toBeLessThan(Date.now() + 60_000);
      // The one that is due wakes whoever moves messages.
      expect(channel?.at(-1)).toBe(String(due));
      const now = { ...ab, address: message("b", due).address };
      expect(elements).toEqual(isExact ? [ab, c].map(element) : [a, ab, c, now].map(element));
      const entry = businessKeys?.[KEY] ?? "";
      expect(entry.slice(0, 25)).toBe(indexEntry(c));
      expect(entry.slice(33)).toBe(indexEntry(c, 0, NO_CAP).slice(25) + mark(b, 4) + mark(a, 0));
    });

    test("within one script", async () => {
      const queue = await newMoves();
      const outcomes = (await offer(queue, [a, b, c, d], { most: "2,1000" })).map(
        ({ outcome }) => outcome,
      );
      expect(outcomes).toEqual(["added", "collected", "added", "collected"]);
      const { timeouts = [], order: elements } = await queue.snapshot();
      expect(timeouts.map(([member]) => member)).toEqual([ab.member, collecting(d, [c, 0]).member]);
      const [[, due] = ["", 0]] = timeouts;
      expect(due).toBeLessThan(Date.now() + 60_000);
      const now = { ...ab, address: message("b", due).address };
      expect(elements).toEqual([now, collecting(d, [c, 0])].map(element));
    });

    test("it is due no later than the one that follows it", async () => {
      const queue = await newMoves();
      await queue.seed(holding(ab, 4, SINCE));
      await offer(queue, [{ ...c, deadline: 5000 }], { most: "2,1000" });
      const { timeouts } = await queue.snapshot();
      expect(timeouts).toEqual([
        [ab.member, 5000],
        [c.member, 5000],
      ]);
    });

    test("one that is due already stays as it is", async () => {
      const queue = await newMoves();
      const due = collecting(message("b", 1000, KEY), [a, 0]);
      await queue.seed(holding(due, 4, SINCE));
      await offer(queue, [c], { most: "2,1000" });
      expect(await queue.snapshot()).toMatchObject({
        timeouts: [due.delayed, c.delayed],
        order: [element(due), element(c)],
      });
    });
  });

  describe("sent twice", () => {
    test("the last one: the reply is the first one", async () => {
      const queue = await newMoves();
      await queue.seed(holding(ab, 4, SINCE));
      expect(await offer(queue, [b])).toEqual([{ deadline: FAR + 1, outcome: "collected" }]);
      expect(await queue.snapshot()).toEqual(holding(ab, 4, SINCE));
    });

    test.each([
      { one: a, outcome: "added" },
      { one: b, outcome: "collected" },
    ])("others were collected behind it: it is known, $outcome", async ({ one, outcome }) => {
      const queue = await newMoves();
      await queue.seed(holding(abc, 4, SINCE));
      const holder = bytes(c.address);
      expect(await offer(queue, [one])).toEqual([{ deadline: FAR + 2, outcome, holder }]);
      expect(await queue.snapshot()).toEqual(holding(abc, 4, SINCE));
    });

    test.each([
      { one: a, outcome: "added" },
      { one: b, outcome: "collected" },
    ])("its message was full, and the key has passed on: it is known", async ({ one, outcome }) => {
      const queue = await newMoves();
      await queue.seed(holding(ab, 4, SINCE));
      await offer(queue, [c], { most: "2,1000" });
      await offer(queue, [d], { most: "3,1000" });
      const before = await queue.snapshot();
      expect(await offer(queue, [one], { most: "3,1000" })).toMatchObject([{ outcome }]);
      expect(await queue.snapshot()).toEqual(before);
    });

    test("a mark is read only where one begins", async () => {
      const queue = await newMoves();
      // The end of one mark and the beginning of the next look like that of the offer.
      const marks = `\x00xxxx${b.id.slice(4, 8)}${b.id.slice(8, 9)}${b.id.slice(9, 12)}xxxxx`;
      const entry = indexEntry(a, 0, SINCE, NO_CAP) + marks;
      await queue.seed({ ...holding(a), businessKeys: { [KEY]: entry } });
      expect(await offer(queue, [b])).toMatchObject([{ outcome: "collected" }]);
      const { timeouts } = await queue.snapshot();
      expect(timeouts).toEqual([ab.delayed]);
    });

    test("after a reschedule, which changes the address", async () => {
      const queue = await newMoves();
      const { redis, keys } = queue;
      await queue.seed(holding(ab, 4, SINCE));
      const to = { id: "", key: KEY, delay: "", deadline: FAR + 50, elementsAre: order };
      await run(redis, reschedule, keys, { channel: keys.channel, ...to });
      expect(await offer(queue, [a])).toMatchObject([{ outcome: "added", deadline: FAR + 50 }]);
      expect(await offer(queue, [b])).toMatchObject([{ outcome: "collected", deadline: FAR + 50 }]);
      expect((await queue.snapshot()).timeouts).toEqual([[ab.member, FAR + 50]]);
    });
  });

  test("a message that waits for its turn stays there, and passes the key on", async () => {
    const queue = await newMoves();
    const { id, kept, turn } = waitingFor(ab, "");
    const waits = {
      room: { [id]: kept },
      turns: [[turn, 0]],
      businessKeys: { [KEY]: indexEntry(b, 4, SINCE) },
    } as const;
    await queue.seed(waits);
    expect(await offer(queue, [a])).toMatchObject([{ outcome: "added", holder: bytes(b.address) }]);
    expect(await queue.snapshot()).toMatchObject(waits);
    expect(await offer(queue, [c])).toEqual([{ deadline: FAR + 2, outcome: "added" }]);
    const { room, turns, timeouts, businessKeys = {} } = await queue.snapshot();
    expect({ room, turns, timeouts }).toEqual({
      room: waits.room,
      turns: waits.turns,
      timeouts: [c.delayed],
    });
    expect(businessKeys[KEY]?.slice(0, 25)).toBe(indexEntry(c));
    for (const one of [a, b]) await offer(queue, [one]);
    expect((await queue.snapshot()).timeouts).toEqual([c.delayed]);
  });

  test("a retrying message stays, for all its groups, and passes the key on", async () => {
    const queue = await newMoves();
    const trailer = ab.member.slice(26);
    const [first, second] = ["g", "h"].map((group) => retryName(b, group)) as [string, string];
    const value = packRetry({ payload: "b", key: trailer }, 1);
    await queue.seed({
      groups: ["g", "h"],
      retries: [
        [first, FAR],
        [second, FAR + 5],
      ],
      retrying: { [first]: value, [second]: value },
      businessKeys: { [KEY]: indexEntry(b) },
    });
    expect(await offer(queue, [a])).toMatchObject([{ outcome: "added", deadline: FAR }]);
    expect(await offer(queue, [c])).toEqual([{ deadline: FAR + 2, outcome: "added" }]);
    const { retries, retrying, timeouts, businessKeys = {} } = await queue.snapshot();
    expect(timeouts).toEqual([c.delayed]);
    expect(retries).toHaveLength(2);
    expect(retrying).toEqual({ [first]: value, [second]: value });
    expect(businessKeys[KEY]?.slice(0, 25)).toBe(indexEntry(c));
    for (const one of [a, b]) await offer(queue, [one]);
    expect((await queue.snapshot()).timeouts).toEqual([c.delayed]);
  });

  test("marks are kept of the last thousand", async () => {
    const queue = await newMoves();
    const marks = "\x00abcdefgh".repeat(1000);
    const entry = indexEntry(a, 0, SINCE, NO_CAP) + marks;
    await queue.seed({ ...holding(a), businessKeys: { [KEY]: entry } });
    await offer(queue, [b], { most: "2,1" });
    const { businessKeys = {} } = await queue.snapshot();
    expect(businessKeys[KEY]?.slice(41)).toBe((mark(a, 0) + marks).slice(0, 9000));
  });

  test("what Redis does not let be taken back says that a part may be done", async () => {
    const queue = await newMoves();
    const { url } = await newAclUser(queue.redis, ["+@all", "-zrem", "~*", "resetchannels"]);
    const user = { ...queue, redis: newRedis(url.href) };
    await expect(offer(user, [a, b])).rejects.toThrow(IN_PART);
    expect((await queue.snapshot()).timeouts).toEqual([ab.delayed]);
    // One that would have to leave is not replaced at all.
    await expect(offer(user, [{ ...c, deadline: 1000 }])).rejects.toThrow(/^(?!.*a part)/);
    expect((await queue.snapshot()).timeouts).toEqual([ab.delayed]);
  });
});
