import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ClosedError, RedisError } from "../../../src/errors.ts";
import { Waiters, type WaitOptions } from "../../../src/run/waiters.ts";

/** Milliseconds that a reply may take after a wait is over. */
const LAST_REPLY = 1000;

let isConnected: boolean;
let onChange: ReturnType<typeof vi.fn<() => void>>;
let waiters: Waiters<string>;

beforeEach(() => {
  vi.useFakeTimers();
  isConnected = true;
  onChange = vi.fn<() => void>();
  waiters = new Waiters('queue "q"', { isConnected: () => isConnected, onChange });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A waiting call. Its outcome: "waits", what it got, or why it failed. */
class Call {
  outcome: unknown = "waits";

  constructor(max = 1, { signal, timeout = Infinity }: Partial<WaitOptions> = {}) {
    waiters.wait(max, { signal, timeout }).then(
      (messages) => (this.outcome = messages),
      (error: unknown) => (this.outcome = error),
    );
  }
}

/** Lets time pass, and handles the promises that settle. */
const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

const outcomes = async (...calls: Call[]) => {
  await pass();
  return calls.map(({ outcome }) => outcome);
};

describe("giving", () => {
  test("serves the first waiter first, with all its messages at once", async () => {
    const calls = [new Call(1), new Call(3), new Call(1), new Call(2)] as const;
    expect(waiters.wanted).toEqual([1, 3, 1, 2]);
    expect(waiters.give(["a", "b", "c"])).toEqual([]);
    expect(await outcomes(...calls)).toEqual([["a"], ["b", "c"], "waits", "waits"]);
    expect(waiters.wanted).toEqual([1, 2]);
    expect(waiters.give(["d", "e"])).toEqual([]);
    expect(await outcomes(...calls.slice(2))).toEqual([["d"], ["e"]]);
  });

  test("returns the messages that nobody takes, in order", async () => {
    const call = new Call(2);
    expect(waiters.give(["a", "b", "c", "d"])).toEqual(["c", "d"]);
    expect(await outcomes(call)).toEqual([["a", "b"]]);
    expect(waiters.give(["e"])).toEqual(["e"]);
  });

  test("without messages nobody is settled", async () => {
    expect(waiters.give([])).toEqual([]);
    const call = new Call();
    expect(waiters.giveLast([])).toEqual([]);
    expect(await outcomes(call)).toEqual(["waits"]);
    expect(waiters.pendingCount).toBe(1);
  });

  test("leaves no timer and no listener behind", async () => {
    const { signal } = new AbortController();
    const call = new Call(1, { signal, timeout: 60_000 });
    expect([vi.getTimerCount(), getEventListeners(signal, "abort").length]).toEqual([1, 1]);
    waiters.give(["a"]);
    expect(await outcomes(call)).toEqual([["a"]]);
    expect([vi.getTimerCount(), getEventListeners(signal, "abort").length]).toEqual([0, 0]);
  });
});

describe("a time that is over", () => {
  test("while others wait, it gets none at once and they keep waiting", async () => {
    const other = new Call();
    const call = new Call(1, { timeout: 20 });
    onChange.mockClear();
    await pass(19);
    expect(await outcomes(call)).toEqual(["waits"]);
    await pass(1);
    expect(await outcomes(call, other)).toEqual([[], "waits"]);
    expect(waiters.wanted).toEqual([1]);
    // The reply to the blocking call is still awaited.
    expect(onChange).not.toHaveBeenCalled();
  });

  test("the last waiter gets what the reply brings, before later ones", async () => {
    const call = new Call(2, { timeout: 20 });
    onChange.mockClear();
    await pass(20);
    expect(call.outcome).toBe("waits");
    expect([waiters.pendingCount, waiters.areThere]).toEqual([0, false]);
    expect(onChange).toHaveBeenCalledOnce();

    const next = new Call();
    expect(waiters.giveLast(["a", "b", "c"])).toEqual([]);
    expect(await outcomes(call, next)).toEqual([["a", "b"], ["c"]]);
  });

  test("the last waiter gets none if the reply brings none", async () => {
    const call = new Call(1, { timeout: 20 });
    await pass(20);
    // The pop's reply is not the last: the blocking call after it is still outstanding.
    waiters.give([]);
    expect(await outcomes(call)).toEqual(["waits"]);
    waiters.giveLast([]);
    expect(await outcomes(call)).toEqual([[]]);
  });

  test("the last waiter gets none if the reply takes longer than a second", async () => {
    const call = new Call(1, { timeout: 20 });
    await pass(20 + LAST_REPLY - 1);
    expect(call.outcome).toBe("waits");
    await pass(1);
    expect(call.outcome).toEqual([]);
    expect(waiters.giveLast(["late"])).toEqual(["late"]);
  });

  test("the last waiter can still be aborted", async () => {
    const aborting = new AbortController();
    const call = new Call(1, { timeout: 20, signal: aborting.signal });
    await pass(20);
    aborting.abort("enough");
    expect(await outcomes(call)).toEqual(["enough"]);
    expect(waiters.giveLast(["late"])).toEqual(["late"]);
  });
});

describe("a time that is over before there is a connection", () => {
  let calls: [Call, Call];

  beforeEach(async () => {
    isConnected = false;
    calls = [new Call(1, { timeout: 20 }), new Call(3, { timeout: 20 })];
    await pass(20);
  });

  test("leaves the waiters unserved until Redis was asked for them", async () => {
    expect(await outcomes(...calls)).toEqual(["waits", "waits"]);
    expect([waiters.pendingCount, waiters.unservedCount]).toEqual([0, 2]);
    expect(waiters.areThere).toBe(true);
    expect(waiters.wanted).toEqual([]);
  });

  test("unserved waiters come before others", async () => {
    const patient = new Call();
    const hasty = new Call(1, { timeout: 5 });
    await pass(5);
    expect([waiters.pendingCount, waiters.unservedCount]).toEqual([1, 3]);
    isConnected = true;
    waiters.expireUnserved();
    waiters.giveLast(["a", "b", "c", "d", "e", "f"]);
    expect(await outcomes(...calls, hasty, patient)).toEqual([
      ["a"],
      ["b", "c", "d"],
      ["e"],
      ["f"],
    ]);
  });

  test("unserved waiters get what one pop brings", async () => {
    isConnected = true;
    expect(waiters.expireUnserved()).toBe(4);
    expect([waiters.unservedCount, waiters.areThere]).toEqual([0, false]);
    expect(waiters.giveLast(["a", "b"])).toEqual([]);
    expect(await outcomes(...calls)).toEqual([["a"], ["b"]]);
  });

  test("unserved waiters get none if the pop brings none", async () => {
    waiters.expireUnserved();
    waiters.giveLast([]);
    expect(await outcomes(...calls)).toEqual([[], []]);
  });

  test("unserved waiters fail if there is no connection within a second", async () => {
    await pass(LAST_REPLY - 1);
    expect(await outcomes(...calls)).toEqual(["waits", "waits"]);
    await pass(1);
    for (const { outcome } of calls) {
      expect(outcome).toBeInstanceOf(RedisError);
      expect(outcome).toMatchObject({
        message:
          'cannot take from queue "q" (nothing was sent, so nothing was taken): Redis could not be reached in time',
        effect: "none",
      });
    }
    expect(waiters.areThere).toBe(false);
  });

  test("unserved waiters whose block was lost may have lost a message", async () => {
    waiters.loseReply();
    const later = new Call(1, { timeout: 0 });
    await pass(LAST_REPLY);
    for (const { outcome } of calls) expect(outcome).toHaveProperty("effect", "unknown");
    expect(later.outcome).toHaveProperty("effect", "none");
  });

  test("unserved waiters get none if the pop was sent but has no reply by then", async () => {
    await pass(LAST_REPLY - 1);
    waiters.expireUnserved();
    await pass(1);
    expect(await outcomes(...calls)).toEqual([[], []]);
  });

  test("a failure to connect rejects the unserved waiters; the others keep waiting", async () => {
    const patient = new Call();
    waiters.failUnserved(new Error("no connection"));
    const failure = {
      message: 'cannot take from queue "q" (nothing was sent, so nothing was taken): no connection',
    };
    expect(await outcomes(...calls, patient)).toMatchObject([failure, failure, "waits"]);
    expect(waiters.unservedCount).toBe(0);
  });
});

describe("aborting", () => {
  test("rejects at once if the signal is aborted already", async () => {
    const call = new Call(1, { signal: AbortSignal.abort("no longer needed") });
    expect(await outcomes(call)).toEqual(["no longer needed"]);
    expect(waiters.areThere).toBe(false);
    expect(onChange).not.toHaveBeenCalled();
  });

  test.each([
    ["an Error", new Error("enough")],
    ["null", null],
    ["0", 0],
  ])("rejects with the signal's reason, whatever it is: %s", async (_, reason) => {
    const aborting = new AbortController();
    const call = new Call(1, { signal: aborting.signal, timeout: 60_000 });
    onChange.mockClear();
    aborting.abort(reason);
    expect(await outcomes(call)).toEqual([reason]);
    expect(onChange).toHaveBeenCalledOnce();
    expect(waiters.areThere).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("leaves the others in their order", async () => {
    const aborting = new AbortController();
    const calls = [new Call(), new Call(1, { signal: aborting.signal }), new Call()] as const;
    aborting.abort();
    waiters.give(["a", "b"]);
    expect(await outcomes(calls[0], calls[2])).toEqual([["a"], ["b"]]);
  });

  test("an unserved waiter leaves, too", async () => {
    isConnected = false;
    const aborting = new AbortController();
    const call = new Call(1, { timeout: 20, signal: aborting.signal });
    await pass(20);
    aborting.abort("enough");
    expect(await outcomes(call)).toEqual(["enough"]);
    expect(waiters.areThere).toBe(false);
  });

  test("20 calls with one signal cause no warning of a leak", async () => {
    const warnings = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const { signal } = new AbortController();
    const calls = Array.from({ length: 20 }, () => new Call(1, { signal }));
    waiters.failAll(new Error("enough"));
    await outcomes(...calls);
    expect(warnings).not.toHaveBeenCalled();
  });
});

/** One waiter that is waiting, one that is expired, and one that is unserved. */
async function oneOfEach() {
  const expired = new Call(1, { timeout: 20 });
  await pass(20);
  isConnected = false;
  const unserved = new Call(1, { timeout: 20 });
  await pass(20);
  return [new Call(), expired, unserved] as const;
}

test("a failure for all rejects everybody, and later callers wait", async () => {
  const calls = await oneOfEach();
  const failure = new Error("WRONGTYPE");
  waiters.failAll(failure);
  expect(await outcomes(...calls)).toEqual([failure, failure, failure]);
  expect(waiters.areThere).toBe(false);
  expect(await outcomes(new Call())).toEqual(["waits"]);
});

test("dismisses expired waiters only", async () => {
  const calls = await oneOfEach();
  waiters.dismissExpired();
  expect(await outcomes(...calls)).toEqual(["waits", [], "waits"]);
});

test("close rejects all waiters, and later ones as well, with a ClosedError", async () => {
  const calls = await oneOfEach();
  expect(waiters.isClosed).toBe(false);
  onChange.mockClear();
  waiters.close();
  expect(waiters.isClosed).toBe(true);
  expect(onChange).toHaveBeenCalledOnce();
  const aborted = new Call(1, { signal: AbortSignal.abort() });
  for (const outcome of await outcomes(...calls, new Call(), aborted)) {
    expect(outcome).toBeInstanceOf(ClosedError);
  }
  expect(waiters.giveLast(["a"])).toEqual(["a"]);
});
