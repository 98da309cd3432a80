import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { DelaylineError } from "../../../src/errors.ts";
import type { Taken } from "../../../src/ready/pops.ts";
import { GiveBack } from "../../../src/ready/give-back.ts";
import { Waiters } from "../../../src/run/waiters.ts";
import { valuesIn } from "../../helpers/packed-rows.ts";
import { refusal, troublesIn, Wire } from "./wire.ts";

const SOURCE = { ready: "q", receipts: "receipts" };
const CLOSE_TIMEOUT = 1000;

let wire: Wire;
let waiters: Waiters<Taken>;
let errors: string[];
let giveBack: GiveBack;

beforeEach(() => {
  vi.useFakeTimers();
  wire = new Wire();
  errors = [];
  waiters = new Waiters('queue "q"', { isConnected: () => true, onChange: () => {} });
  giveBack = new GiveBack('queue "q"', waiters, {
    connections: wire.connections,
    report: ({ message }: DelaylineError) => errors.push(message),
    troubles: troublesIn(errors),
    unreachableTimeout: CLOSE_TIMEOUT,
  });
});

afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

const messages = (...payloads: string[]): Taken[] =>
  payloads.map((payload) => ({ source: SOURCE, payload: Buffer.from(payload) }));

const texts = (taken: readonly Taken[]) => taken.map(({ payload }) => String(payload));

/** Begins to put messages back. Returns a function that tells whether it has ended. */
function putBack(...payloads: string[]): () => boolean {
  let hasEnded = false;
  void giveBack.putBack(messages(...payloads)).then(() => (hasEnded = true));
  return () => hasEnded;
}

/** The script that was sent. */
async function script() {
  await pass();
  const { words, ...sent } = wire.take("EVALSHA");
  const [, , , ready, receipts, receipt, rows] = words;
  return { ...sent, ready, receipts, receipt, payloads: valuesIn(rows) };
}

/** Waits for messages. Returns a function that returns the received ones. */
function wait(max = 1): () => string[] | undefined {
  let taken: string[] | undefined;
  void waiters.wait(max, { timeout: Infinity }).then((got) => (taken = texts(got)));
  return () => taken;
}

test("puts messages back with a receipt, and then removes the receipt", async () => {
  const hasEnded = putBack("a", "b");
  const sent = await script();
  expect(sent).toMatchObject({ ready: "q", receipts: "receipts", payloads: ["a", "b"] });
  expect(hasEnded()).toBe(false);
  expect(wire.open).toEqual([]);

  sent.reply(2);
  await pass();
  // Only closing waits for the removal.
  expect(hasEnded()).toBe(true);
  const removal = wire.take("ZREM");
  expect(removal.words).toEqual(["ZREM", "receipts", sent.receipt]);
  let isRemoved = false;
  void giveBack.done().then(() => (isRemoved = true));
  await pass();
  expect(isRemoved).toBe(false);
  removal.fail(new Error("lost"));
  await pass();
  expect(isRemoved).toBe(true);
  expect(errors).toEqual([]);
});

test("each put has its own receipt", async () => {
  putBack("a");
  putBack("b");
  expect((await script()).receipt).not.toBe((await script()).receipt);
});

test("many go back in batches, the newest first, since each goes to the head", async () => {
  const all = Array.from({ length: 1201 }, (_, i) => String(i));
  const hasEnded = putBack(...all);
  let there: string[] = [];
  for (const size of [500, 500, 201]) {
    const sent = await script();
    expect(sent.payloads).toHaveLength(size);
    there = [...sent.payloads, ...there];
    sent.reply(size);
  }
  await pass();
  expect(hasEnded()).toBe(true);
  expect(there).toEqual(all);
});

test("messages of several sources go back at once, each to its own", async () => {
  const other = { ready: "other", receipts: "other receipts" };
  const [a, b, c] = messages("a", "b", "c") as [Taken, Taken, Taken];
  void giveBack.putBack([a, { ...b, source: other }, c]);
  expect(await script()).toMatchObject({ ready: "q", receipts: "receipts", payloads: ["a", "c"] });
  const second = { ready: "other", receipts: "other receipts", payloads: ["b"] };
  expect(await script()).toMatchObject(second);
});

test("nothing to put back sends nothing", async () => {
  const hasEnded = putBack();
  await pass();
  expect([hasEnded(), wire.names]).toEqual([true, []]);
});

test("tries again with the same receipt after a pause that grows up to 2 s", async () => {
  const hasEnded = putBack("a");
  const first = await script();
  let last = first;
  for (const pause of [100, 200, 400, 800, 1600, 2000, 2000]) {
    last.fail(new Error("lost"));
    await pass(pause - 1);
    expect(wire.open).toEqual([]);
    await pass(1);
    last = await script();
    expect(last.receipt).toBe(first.receipt);
  }
  last.reply(0);
  await pass();
  expect(hasEnded()).toBe(true);
  expect(errors).toEqual(
    Array(7).fill('cannot give back yet 1 message(s) to queue "q": lost') as string[],
  );
});

test("refused messages go to those who wait by then, and the rest is tried again", async () => {
  const hasEnded = putBack("a", "b", "c", "d");
  const taken = wait();
  const refused = await script();
  refused.fail(refusal("NOPERM no"));
  await pass(99);
  expect(taken()).toBeUndefined();
  const many = wait(2);
  await pass(1);
  expect([taken(), many()]).toEqual([["a"], ["b", "c"]]);
  const again = await script();
  expect(again.payloads).toEqual(["d"]);
  // Other messages, so another receipt.
  expect(again.receipt).not.toBe(refused.receipt);
  again.reply(1);
  await pass();
  expect(hasEnded()).toBe(true);
});

test("refused messages are tried again while nobody waits", async () => {
  putBack("a");
  (await script()).fail(refusal("NOPERM no"));
  await pass(100);
  expect((await script()).payloads).toEqual(["a"]);
});

test("messages that Redis may have received go to nobody, even if refused later", async () => {
  putBack("a");
  const taken = wait();
  (await script()).fail(new Error("lost"));
  await pass(100);
  (await script()).fail(refusal("READONLY no"));
  await pass(200);
  expect(taken()).toBeUndefined();
  expect((await script()).payloads).toEqual(["a"]);
});

test("an expired waiter gets refused messages before later waiters; the other expired ones are dismissed", async () => {
  putBack("a", "b");
  let expired: string[] | undefined;
  void waiters.wait(1, { timeout: 10 }).then((got) => (expired = texts(got)));
  const refused = await script();
  await pass(10);
  const later = wait();
  refused.fail(refusal("NOPERM no"));
  await pass(100);
  expect([expired, later()]).toEqual([["a"], ["b"]]);
});

test("once closed it gives up after unreachableTimeout", async () => {
  const hasEnded = putBack("a");
  const sent = await script();
  giveBack.close();
  await pass(CLOSE_TIMEOUT - 100);
  sent.fail(new Error("lost"));
  await pass(100);
  const again = await script();
  await pass(1);
  // Closing again gives no more time.
  giveBack.close();
  again.fail(new Error("lost"));
  await pass();
  expect(hasEnded()).toBe(true);
  expect(errors).toEqual([
    'cannot give back yet 1 message(s) to queue "q": lost',
    'gave up giving back 1 message(s) to queue "q": lost',
  ]);
});

test("it never gives up before it is closed", async () => {
  const hasEnded = putBack("a");
  const sent = await script();
  await pass(86_400_000);
  sent.fail(new Error("lost"));
  await pass(100);
  (await script()).reply(1);
  await pass();
  expect(hasEnded()).toBe(true);
});
