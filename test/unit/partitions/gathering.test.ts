import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ClosedError, RedisError } from "../../../src/errors.ts";
import { Gathering, type GatheringSource } from "../../../src/partitions/taking/gathering.ts";
import type { WaitOptions } from "../../../src/run/waiters.ts";

/** A source that the test controls. An aborted wait rejects. */
class Source implements GatheringSource<string> {
  /** How many items each wait has asked for. */
  readonly asked: number[] = [];
  readonly back: (readonly string[])[] = [];
  /** The reported outcomes of its waits, in order. */
  readonly told: string[] = [];
  readonly work = {
    failed: () => void this.told.push("failed"),
    unreachable: () => void this.told.push("unreachable"),
    succeeded: () => void this.told.push("succeeded"),
    stopped: () => void this.told.push("stopped"),
    ended: () => void this.told.push("ended"),
  };
  /** Whether a wait continues although it is aborted, because its reply is on its way. */
  isReplying = false;
  #waiting: PromiseWithResolvers<readonly string[]> | undefined;

  get isWaitedFor(): boolean {
    return this.#waiting !== undefined;
  }

  async wait(max: number, { signal }: WaitOptions): Promise<readonly string[]> {
    expect(this.isWaitedFor, "one wait at a time").toBe(false);
    this.asked.push(max);
    const waiting = (this.#waiting = newPromise<readonly string[]>());
    const onAbort = () => {
      if (!this.isReplying) waiting.reject(signal?.reason as Error);
    };
    signal?.addEventListener("abort", onAbort);
    try {
      return await waiting.promise;
    } finally {
      this.#waiting = undefined;
    }
  }

  putBack(items: readonly string[]): void {
    this.back.push(items);
  }

  async bring(...items: string[]): Promise<void> {
    this.#waiting?.resolve(items);
    await pass();
  }

  async fail(error: Error): Promise<void> {
    this.#waiting?.reject(error);
    await pass();
  }
}

/** A waiting call. Its outcome: "waits", the items that it got, or why it failed. */
class Call {
  outcome: unknown = "waits";
  readonly #aborting = new AbortController();

  constructor(max = 1, timeout = Infinity) {
    const { signal } = this.#aborting;
    gathering.wait(max, { signal, timeout }).then(
      (items) => (this.outcome = [...items].join(" ")),
      (error: unknown) => (this.outcome = error),
    );
  }

  abort(): void {
    this.#aborting.abort("aborted");
  }
}

let gathering: Gathering<string>;
let one: Source;
let two: Source;

beforeEach(() => {
  vi.useFakeTimers();
  gathering = new Gathering('queue "q"');
  [one, two] = [new Source(), new Source()];
  void gathering.setSources([one, two]);
});

afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
const outcomes = (...calls: Call[]) => calls.map(({ outcome }) => outcome);
const areWaitedFor = (...sources: Source[]) => sources.map(({ isWaitedFor }) => isWaitedFor);

function newPromise<Value>(): PromiseWithResolvers<Value> {
  const parts = {} as PromiseWithResolvers<Value>;
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

interface PromiseWithResolvers<Value> {
  promise: Promise<Value>;
  resolve: (value: Value) => void;
  reject: (error: Error) => void;
}

test("asks for nothing until somebody waits, then asks each source for its share", async () => {
  await pass(60_000);
  expect([one.asked, two.asked]).toEqual([[], []]);
  void new Call(5);
  await pass();
  expect([one.asked, two.asked]).toEqual([[3], [3]]);
});

test("first come, first served, wherever a message comes from", async () => {
  const calls = [new Call(), new Call(2), new Call()];
  await two.bring("a", "b");
  expect(outcomes(...calls)).toEqual(["a", "b", "waits"]);
  await one.bring("c");
  expect(outcomes(...calls)).toEqual(["a", "b", "c"]);
});

test("a source is waited for anew as long as anybody waits", async () => {
  const calls = [new Call(), new Call()];
  await one.bring("a");
  await one.bring("b");
  expect(outcomes(...calls)).toEqual(["a", "b"]);
  expect(one.asked).toEqual([1, 1]);
});

describe("when nobody waits any more", () => {
  beforeEach(async () => {
    const call = new Call();
    await one.bring("first");
    expect(call.outcome).toBe("first");
  });

  test("the other waits end a moment later, not at once", async () => {
    expect(areWaitedFor(one, two)).toEqual([false, true]);
    await pass(4);
    expect(areWaitedFor(one, two)).toEqual([false, true]);
    await pass(1);
    expect(areWaitedFor(one, two)).toEqual([false, false]);
    await pass(60_000);
    expect([one.asked, two.asked]).toEqual([[1], [1]]);
  });

  test("somebody who comes within that moment finds the waits still going on", async () => {
    await pass(4);
    const call = new Call();
    await pass(60_000);
    expect([one.asked, two.asked]).toEqual([[1, 1], [1]]);
    await two.bring("second");
    expect(call.outcome).toBe("second");
  });

  test("somebody who comes while they end is served by the next waits", async () => {
    two.isReplying = true;
    await pass(5);
    const call = new Call();
    await pass();
    expect(areWaitedFor(one, two)).toEqual([true, true]);
    await two.bring();
    expect([call.outcome, two.asked]).toEqual(["waits", [1, 1]]);
    await two.bring("second");
    expect(call.outcome).toBe("second");
  });

  test("messages that still arrive are kept for that moment, for the next waiter", async () => {
    await two.bring("second");
    const call = new Call();
    await pass();
    expect([call.outcome, two.back]).toEqual(["second", []]);
  });

  test("they go back after that moment, together and in order", async () => {
    await two.bring("a", "b");
    await pass(4);
    expect(two.back).toEqual([]);
    await pass(1);
    expect(two.back).toEqual([["a", "b"]]);
    const call = new Call();
    await pass();
    expect(call.outcome).toBe("waits");
  });

  test("what is left of them goes back a moment after the last waiter was served", async () => {
    await two.bring("a", "b");
    const call = new Call();
    await pass();
    expect(call.outcome).toBe("a");
    await pass(5);
    expect(two.back).toEqual([["b"]]);
  });

  test("messages that arrive later go back at once", async () => {
    two.isReplying = true;
    await pass(5);
    await two.bring("late");
    expect(two.back).toEqual([["late"]]);
  });
});

describe("other sources", () => {
  test("new sources are waited for at once, and former ones until their pending reply has come", async () => {
    const calls = [new Call(), new Call()] as const;
    two.isReplying = true;
    const three = new Source();
    let hasLeft = false;
    void gathering.setSources([one, three]).then(() => (hasLeft = true));
    await pass();
    expect([areWaitedFor(one, two, three), hasLeft]).toEqual([[true, true, true], false]);
    await two.bring("a");
    expect([outcomes(...calls), hasLeft]).toEqual([["a", "waits"], true]);
    expect(areWaitedFor(one, two, three)).toEqual([true, false, true]);
    expect([one.asked, three.asked]).toEqual([[1], [1]]);
    await three.bring("b");
    expect(calls[1].outcome).toBe("b");
  });

  test("messages that a former source brought for nobody go back at once", async () => {
    void new Call();
    await one.bring("a");
    await two.bring("b");
    await gathering.setSources([one]);
    expect(two.back).toEqual([["b"]]);
  });

  test("without sources everybody waits until there are some", async () => {
    void gathering.setSources([]);
    const call = new Call();
    await pass(60_000);
    void gathering.setSources([two]);
    await two.bring("a");
    expect(call.outcome).toBe("a");
  });
});

describe("a source that rejects", () => {
  const refusal = new RedisError("cannot take", new Error("WRONGTYPE"));

  test("a failing source does not concern the waiters while others work", async () => {
    const call = new Call();
    await one.fail(refusal);
    expect([call.outcome, one.told]).toEqual(["waits", ["failed"]]);
    await two.bring("a");
    expect(call.outcome).toBe("a");
  });

  test("is waited for again after a pause", async () => {
    const call = new Call();
    await one.fail(refusal);
    await pass(50);
    expect(one.isWaitedFor).toBe(false);
    await pass(100);
    await one.bring("a");
    expect([call.outcome, one.told]).toEqual(["a", ["failed", "succeeded"]]);
  });

  test("if every source fails, all waiters are told, and no source is waited for", async () => {
    const calls = [new Call(), new Call()];
    await one.fail(refusal);
    await two.fail(refusal);
    expect(outcomes(...calls)).toEqual([refusal, refusal]);
    await pass(5);
    expect(areWaitedFor(one, two)).toEqual([false, false]);
    const call = new Call();
    await two.bring("a");
    expect(call.outcome).toBe("a");
  });

  test("a failing source that is left for good is no longer in trouble", async () => {
    void new Call();
    await one.fail(refusal);
    await two.bring("a");
    await pass(200);
    expect(one.told).toEqual(["failed", "stopped"]);
  });

  test("a source that was closed is left alone", async () => {
    const call = new Call();
    await one.fail(new ClosedError("the client"));
    expect([call.outcome, one.asked]).toEqual(["waits", [1]]);
    await two.bring("a");
    expect(call.outcome).toBe("a");
  });
});

test("a timeout returns nothing; if nobody else waits, the waits end a moment later", async () => {
  const calls = [new Call(1, 20), new Call(1, 30)];
  await pass(20);
  expect(outcomes(...calls)).toEqual(["", "waits"]);
  await pass(14);
  expect([...outcomes(...calls), one.isWaitedFor]).toEqual(["", "waits", true]);
  await pass(1);
  expect([...outcomes(...calls), one.isWaitedFor]).toEqual(["", "", false]);
});

test("a waiter that has just timed out still gets a message that is under way", async () => {
  const call = new Call(1, 20);
  await pass(20);
  await one.bring("a");
  await pass(5);
  expect([call.outcome, one.back]).toEqual(["a", []]);
});

test("a waiter that aborts gets nothing; the others keep waiting", async () => {
  const calls = [new Call(), new Call()] as const;
  calls[0].abort();
  await one.bring("a");
  expect(outcomes(...calls)).toEqual(["aborted", "a"]);
});

test("close rejects every wait, and resolves when everything under way has gone back", async () => {
  const call = new Call();
  two.isReplying = true;
  let isClosed = false;
  void gathering.close().then(() => (isClosed = true));
  await pass(60_000);
  expect([call.outcome, isClosed]).toEqual([expect.any(ClosedError), false]);
  await two.bring("late");
  expect([two.back, isClosed]).toEqual([[["late"]], true]);
  await expect(gathering.wait(1, { timeout: Infinity })).rejects.toBeInstanceOf(ClosedError);
});

test("close gives back the messages that were kept", async () => {
  void new Call();
  await one.bring("a");
  await two.bring("b", "c");
  await gathering.close();
  expect(two.back).toEqual([["b", "c"]]);
});

describe("a look", () => {
  const closed = new ClosedError("the partition");

  test("passes over a source that is removed meanwhile", async () => {
    const [first, second] = [new Source(), new Source()];
    const looking = gathering.look(1, [first, second]);
    await first.fail(closed);
    await pass();
    await second.bring();
    expect(await looking).toEqual([]);
  });

  test("is refused once the gathering is closed", async () => {
    const source = new Source();
    const looking = gathering.look(1, [source]);
    await gathering.close();
    void source.fail(closed);
    await expect(looking).rejects.toBe(closed);
  });
});
