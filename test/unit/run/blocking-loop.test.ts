import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ClosedError } from "../../../src/errors.ts";
import { BlockingLoop, type LoopSteps } from "../../../src/run/blocking-loop.ts";
import { refusal, troublesIn, Wire } from "../ready/wire.ts";

let wire: Wire;
let errors: string[];
let loop: BlockingLoop<string>;
/** What nobody took; `giveBack` ends a give-back by hand. */
let given: string[];
let giveBack: () => void;
let mustRest: boolean;
let isStale: boolean;

beforeEach(() => {
  vi.useFakeTimers();
  wire = new Wire();
  errors = [];
  given = [];
  mustRest = false;
  isStale = false;
  loop = newLoop();
});

afterEach(async () => {
  mustRest = false;
  const closing = loop.close();
  await pass();
  while (wire.open.length > 0) {
    wire.take(wire.open[0] as string).reply(null);
    await pass(5);
  }
  giveBack?.();
  // Longer than a waiter's last reply.
  await pass(1000);
  await closing;
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

/** Takes by a block for one message; by a pop for unserved waiters. */
function newLoop(steps: Partial<LoopSteps<string>> = {}): BlockingLoop<string> {
  const server = { connections: wire.connections, troubles: troublesIn(errors) };
  return new BlockingLoop<string>(server, {
    name: 'queue "q"',
    step: () => step(),
    giveBack: (messages) => {
      given.push(...messages);
      return new Promise<void>((resolve) => (giveBack = resolve));
    },
    ...steps,
  });
}

function step(): Promise<void> {
  const { client, waiters } = loop;
  if (mustRest) return loop.rest(() => mustRest);
  if (client === undefined) return loop.open("q");
  if (waiters.unservedCount > 0) {
    const count = waiters.expireUnserved();
    return loop.take(async () => deliver(await client.redis.lpopBuffer("q", count)));
  }
  return loop.block(
    async () => deliver(await client.redis.blpopBuffer("q", 2)),
    () => isStale || waiters.pendingCount === 0,
  );
}

const deliver = (payloads: readonly unknown[] | null) => loop.deliver((payloads ?? []).map(String));

const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

/** A waiting call. Its outcome: "waits", the messages that it got, or why it failed. */
class Call {
  outcome: unknown = "waits";
  readonly #aborting = new AbortController();

  constructor(timeout = Infinity) {
    loop.waiters.wait(1, { timeout, signal: this.#aborting.signal }).then(
      (messages) => (this.outcome = messages),
      (error: unknown) => (this.outcome = error),
    );
  }

  abort(): void {
    this.#aborting.abort("aborted");
  }
}

async function reply(name: string, value?: unknown): Promise<void> {
  await pass();
  wire.take(name).reply(value);
  await pass();
}

async function fail(name: string, error: Error): Promise<void> {
  await pass();
  wire.take(name).fail(error);
  await pass();
}

/** One waits, over an open connection. */
async function block(): Promise<Call> {
  const call = new Call();
  await reply("connect");
  expect(wire.open).toEqual(["BLPOP"]);
  return call;
}

describe("as long as somebody waits", () => {
  test("runs step after step over one connection, which stays open when nobody does", async () => {
    const first = await block();
    await reply("BLPOP", null);
    await reply("BLPOP", ["a"]);
    expect(first.outcome).toEqual(["a"]);
    await pass(60_000);
    expect(wire.names).toEqual(["connect", "BLPOP", "BLPOP"]);
    const second = new Call();
    await reply("BLPOP", ["b"]);
    expect([second.outcome, wire.names.length]).toEqual([["b"], 4]);
  });

  test("calls of one turn are served together, also by the step after a message", async () => {
    const first = await block();
    const again: Call[] = [];
    void loop.waiters.wait(1, { timeout: Infinity }).then(() => again.push(new Call()));
    await reply("BLPOP", ["a", "b"]);
    expect([first.outcome, again.length]).toEqual([["a"], 1]);
    expect(wire.open).toEqual(["BLPOP"]);
  });

  test("prepares, and looks again afterwards whether anybody waits", async () => {
    let learn: (() => void) | undefined;
    loop = newLoop({
      step: () => loop.prepare(() => new Promise<void>((resolve) => (learn = resolve))),
    });
    const call = new Call();
    await pass();
    call.abort();
    learn?.();
    learn = undefined;
    await pass(60_000);
    expect(learn).toBeUndefined();
  });

  test("takes without a block for those whose time was over before it was connected", async () => {
    const call = new Call(20);
    await pass(20);
    await reply("connect");
    await reply("LPOP", ["a"]);
    expect([call.outcome, wire.open]).toEqual([["a"], []]);
  });

  test("when nobody does, finishes first what its owner has left", async () => {
    let finish: (() => void) | undefined;
    let isFinished = false;
    loop = newLoop({
      onLeft: () => {
        if (isFinished) return undefined;
        return new Promise<void>((resolve) => (finish = resolve));
      },
    });
    await block();
    await reply("BLPOP", ["a"]);
    const closing = loop.close();
    let isClosed = false;
    void closing.then(() => (isClosed = true));
    await pass(60_000);
    expect(isClosed).toBe(false);
    isFinished = true;
    finish?.();
    await closing;
  });
});

describe("a block in vain", () => {
  test("is ended by UNBLOCK until it replies, and not after that", async () => {
    const call = await block();
    call.abort();
    await reply("UNBLOCK", 0);
    await pass(5);
    await reply("UNBLOCK", 1);
    await reply("BLPOP", null);
    await pass(60_000);
    expect([call.outcome, wire.open, errors]).toEqual(["aborted", [], []]);
  });

  test("for a reason of its owner, too; then the next step follows", async () => {
    const call = await block();
    isStale = true;
    loop.review();
    await reply("UNBLOCK", 1);
    isStale = false;
    await reply("BLPOP", null);
    await reply("BLPOP", ["a"]);
    expect(call.outcome).toEqual(["a"]);
  });

  test("is kept if it no longer is", async () => {
    const first = await block();
    first.abort();
    await pass();
    const second = new Call();
    await reply("UNBLOCK", 0);
    await pass(60);
    expect(wire.open).toEqual(["BLPOP"]);
    await reply("BLPOP", ["a"]);
    expect(second.outcome).toEqual(["a"]);
  });

  test("whose end fails is reported, and ended with the next attempt", async () => {
    const call = await block();
    call.abort();
    await fail("UNBLOCK", new Error("lost"));
    expect(errors).toEqual(['cannot end the wait of queue "q": lost']);
    expect(wire.open).toEqual(["BLPOP"]);
    await pass(60);
    await reply("UNBLOCK", 1);
    await reply("BLPOP", null);
  });
});

test("gives back what nobody takes, and takes nothing meanwhile", async () => {
  const first = await block();
  await reply("BLPOP", ["a", "b", "c"]);
  expect([first.outcome, given]).toEqual([["a"], ["b", "c"]]);
  const second = new Call();
  await pass(60_000);
  expect(wire.open).toEqual([]);
  giveBack();
  await reply("BLPOP", ["d"]);
  expect(second.outcome).toEqual(["d"]);
});

describe("resting", () => {
  test("sends nothing until the reason is gone; the waiters stay until their time is over", async () => {
    mustRest = true;
    const [late, call] = [new Call(20), new Call()];
    await pass(19);
    expect(late.outcome).toBe("waits");
    await pass(60_000);
    loop.review();
    await pass();
    expect([late.outcome, call.outcome, wire.names]).toEqual([[], "waits", []]);
    mustRest = false;
    loop.review();
    await reply("connect");
    await reply("BLPOP", ["a"]);
    expect(call.outcome).toEqual(["a"]);
  });

  test("ends when the last waiter leaves", async () => {
    mustRest = true;
    const call = new Call();
    await pass();
    call.abort();
    await pass();
    await loop.close();
    expect(wire.names).toEqual([]);
  });
});

describe("a step that has ended can be awaited", () => {
  test("while it blocks, but not while it rests", async () => {
    const call = await block();
    let hasStepped = false;
    void loop.stepped().then(() => (hasStepped = true));
    await pass(100);
    expect(hasStepped).toBe(false);
    await reply("BLPOP", null);
    expect(hasStepped).toBe(true);
    mustRest = true;
    await reply("BLPOP", null);
    await loop.stepped();
    expect(call.outcome).toBe("waits");
  });
});

describe("a failure", () => {
  test("that passes is reported; the wait goes on over a new connection after a growing pause", async () => {
    const call = await block();
    for (const [i, pause] of [100, 200, 400, 500, 500].entries()) {
      await fail(i === 0 ? "BLPOP" : "connect", new Error("lost"));
      await pass(pause - 1);
      expect(wire.open).toEqual([]);
      await pass(1);
      expect(wire.open).toEqual(["connect"]);
    }
    expect(wire.opened.map(({ status }) => status)).toEqual(["end"]);
    await reply("connect");
    await reply("BLPOP", null);
    await fail("BLPOP", new Error("lost"));
    await pass(100);
    await reply("connect");
    await reply("BLPOP", ["a"]);
    expect(call.outcome).toEqual(["a"]);
    expect(errors).toEqual(Array(6).fill('cannot take from queue "q": lost'));
  });

  test("that does not pass rejects all waiters, and keeps the connection", async () => {
    const call = await block();
    await fail("BLPOP", refusal("WRONGTYPE no"));
    expect([call.outcome, errors]).toEqual([expect.objectContaining({ reply: "WRONGTYPE" }), []]);
    void new Call();
    await reply("BLPOP", ["a"]);
    expect(wire.opened.length).toBe(1);
  });

  test("from which its owner recovers is no concern of the loop", async () => {
    const failures: unknown[] = [];
    loop = newLoop({
      recover: async (error) => {
        failures.push(error);
        return true;
      },
    });
    const call = await block();
    await fail("BLPOP", refusal("NOGROUP no"));
    await reply("BLPOP", ["a"]);
    expect([call.outcome, failures.length, errors]).toEqual([["a"], 1, []]);
  });

  test("an illegal change of the mode is one like any other, and costs no message", async () => {
    let isBroken = true;
    loop = newLoop({
      step: async () => {
        await step();
        if (isBroken && given.length > 0) await loop.take(() => loop.open("q"));
      },
    });
    const call = await block();
    await reply("BLPOP", ["a", "b"]);
    giveBack();
    await pass();
    expect([call.outcome, given]).toEqual([["a"], ["b"]]);
    const next = new Call();
    isBroken = false;
    expect(errors).toEqual([
      'cannot take from queue "q": taking must not be followed by connecting',
    ]);
    await pass(100);
    await reply("connect");
    await reply("BLPOP", ["c"]);
    expect(next.outcome).toEqual(["c"]);
  });
});

describe("closing", () => {
  test("before anything waits, and again", async () => {
    await loop.close();
    await loop.close();
    void new Call();
    await pass(60_000);
    expect(wire.names).toEqual([]);
  });

  test("ends the block and then the connection; twice at once", async () => {
    const call = await block();
    let closedCount = 0;
    for (const closing of [loop.close(), loop.close()]) void closing.then(() => closedCount++);
    await pass();
    expect(call.outcome).toBeInstanceOf(ClosedError);
    await reply("UNBLOCK", 1);
    expect([closedCount, wire.opened[0]?.status]).toEqual([0, "ready"]);
    await reply("BLPOP", null);
    await pass(5);
    expect([closedCount, wire.opened[0]?.status]).toEqual([2, "end"]);
    const late = new Call();
    await pass(60_000);
    expect([late.outcome, wire.open]).toEqual([expect.any(ClosedError), []]);
  });

  test("awaits what is given back", async () => {
    await block();
    let isClosed = false;
    void loop.close().then(() => (isClosed = true));
    await reply("UNBLOCK", 1);
    await reply("BLPOP", ["a"]);
    await pass(60_000);
    expect([isClosed, given]).toEqual([false, ["a"]]);
    giveBack();
    await pass();
    expect(isClosed).toBe(true);
  });

  test("ends the pause after a failure, and reports nothing more", async () => {
    void new Call();
    await fail("connect", new Error("refused"));
    await loop.close();
    expect([errors.length, wire.names]).toEqual([1, ["connect"]]);
  });

  test("while it connects, does not report that it failed", async () => {
    void new Call();
    await pass();
    const closing = loop.close();
    await fail("connect", new Error("refused"));
    await closing;
    expect(errors).toEqual([]);
  });
});
