import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ClosedError, type DelaylineError } from "../../../src/errors.ts";
import { Taker } from "../../../src/ready/taker.ts";
import type { TakerOptions } from "../../../src/ready/taker.ts";
import { valuesIn } from "../../helpers/packed-rows.ts";
import { KnownPause, refusal, troublesIn, Wire } from "./wire.ts";

let wire: Wire;
let errors: string[];
let taker: Taker;
/** One for each source. */
let pauses: [KnownPause, ...KnownPause[]];

beforeEach(() => {
  vi.useFakeTimers();
  wire = new Wire();
  errors = [];
  taker = newTaker("q");
});

afterEach(() => {
  vi.useRealTimers();
  // A step reports a failure if a mode follows another that it must not follow.
  expect(errors.filter((message) => message.includes("must not be followed by"))).toEqual([]);
});

const newTaker = (...lists: string[]) => takerOf({}, ...lists);

function takerOf(options: TakerOptions, ...lists: string[]): Taker {
  pauses = lists.map(() => new KnownPause(false)) as typeof pauses;
  const sources = lists.map((ready, i) => ({
    ready,
    receipts: `receipts of ${ready}`,
    pauses: pauses[i] as KnownPause,
  }));
  const shared = {
    connections: wire.connections,
    report: ({ message }: DelaylineError) => errors.push(message),
    troubles: troublesIn(errors),
    unreachableTimeout: 1000,
  };
  return new Taker(sources, shared, options);
}

const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

/** A waiting call. Its outcome: "waits", the payloads that it got, or why it failed. */
class Call {
  outcome: unknown = "waits";
  readonly #aborting = new AbortController();

  constructor(max = 1, timeout = Infinity) {
    taker.wait(max, { timeout, signal: this.#aborting.signal }).then(
      (taken) => (this.outcome = taken.map(({ payload }) => String(payload))),
      (error: unknown) => (this.outcome = error),
    );
  }

  abort(): void {
    this.#aborting.abort("aborted");
  }
}

const outcomes = (...calls: Call[]) => calls.map(({ outcome }) => outcome);

/** Redis replies to a command. */
async function reply(name: string, value?: unknown): Promise<void> {
  await pass();
  wire.take(name).reply(value);
  await pass();
}

/** Redis refuses a command, or its reply is lost. */
async function fail(name: string, error: Error): Promise<void> {
  await pass();
  wire.take(name).fail(error);
  await pass();
}

const popped = (...payloads: string[]) => payloads.map((payload) => Buffer.from(payload));
const blocked = (payload: string, target = "q") => [Buffer.from(target), Buffer.from(payload)];

/** Redis accepts the next give-back. Returns its messages. */
async function replyToGiveBack(): Promise<string[]> {
  await pass();
  const { words, reply: accept } = wire.take("EVALSHA");
  const payloads = valuesIn(words[6]);
  accept(payloads.length);
  await reply("ZREM", 1);
  return payloads;
}

/** Opens the connection: one call waits, and its blocking call gets a message. */
async function connect(): Promise<void> {
  const call = new Call();
  await reply("connect");
  await reply("BLPOP", blocked("first"));
  expect(call.outcome).toEqual(["first"]);
  wire.names.length = 0;
}

test("blocks for one waiter, and asks for nothing when nobody waits", async () => {
  await connect();
  const call = new Call();
  await reply("BLPOP", null);
  expect(call.outcome).toBe("waits");
  await reply("BLPOP", blocked("a"));
  expect(call.outcome).toEqual(["a"]);
  await pass(60_000);
  expect(wire.names).toEqual(["BLPOP", "BLPOP"]);
});

test("waiters of one turn are served by one pop and one block", async () => {
  await connect();
  const calls = [new Call(), new Call(2), new Call()] as const;
  await pass();
  expect(wire.open).toEqual(["LPOP", "BLPOP"]);
  await reply("LPOP", popped("a", "b", "c"));
  expect(outcomes(...calls)).toEqual([["a"], ["b", "c"], "waits"]);
  await reply("BLPOP", blocked("d"));
  expect(calls[2].outcome).toEqual(["d"]);
});

test("pops for the first waiter, although the last block was in vain", async () => {
  await connect();
  const first = new Call(5);
  await reply("LPOP", null);
  first.abort();
  await reply("UNBLOCK", 1);
  await reply("BLPOP", null);
  await pass(60_000);
  const next = new Call(5);
  await reply("LPOP", popped("a", "b"));
  expect(next.outcome).toEqual(["a", "b"]);
});

test("with several sources it only blocks, and pops for unserved waiters alone", async () => {
  taker = newTaker("one", "two");
  const calls = [new Call(5), new Call()];
  await reply("connect");
  expect(wire.open).toEqual(["BLPOP"]);
  await reply("BLPOP", blocked("a", "two"));
  expect(outcomes(...calls)).toEqual([["a"], "waits"]);
  expect(wire.open).toEqual(["BLPOP"]);
});

describe("of several sources in rotating order", () => {
  beforeEach(async () => {
    taker = takerOf({ order: "rotating" }, "one", "two", "three");
  });

  test("a pop asks all sources, and the block after it starts further on", async () => {
    const calls = [new Call(), new Call(), new Call()];
    await reply("connect");
    expect(wire.open).toEqual(["EVALSHA", "BLPOP"]);
    const pop = wire.take("EVALSHA");
    expect(pop.words.slice(2)).toEqual([3, "one", "two", "three", 2]);
    pop.reply([0, Buffer.from("a"), 2, Buffer.from("b")]);
    const block = wire.take("BLPOP");
    expect(block.words[1]).toEqual(["three", "one", "two"]);
    block.reply(blocked("c", "one"));
    await pass();
    expect(outcomes(...calls)).toEqual([["a"], ["b"], ["c"]]);
  });

  test("a pop with an unknown script is abandoned if a block follows it; the next pop is awaited", async () => {
    const calls = [new Call(), new Call()];
    await reply("connect");
    await fail("EVALSHA", refusal("NOSCRIPT no"));
    expect(wire.open).toEqual(["BLPOP"]);
    await reply("BLPOP", blocked("a", "one"));
    expect(outcomes(...calls)).toEqual([["a"], "waits"]);
    calls.push(new Call());
    await reply("BLPOP", blocked("b", "one"));
    expect(wire.open).toEqual(["BLPOP"]);
    await reply("BLPOP", blocked("c", "one"));

    const more = [new Call(), new Call()];
    await fail("EVALSHA", refusal("NOSCRIPT no"));
    expect(wire.open).toEqual(["EVAL"]);
    await reply("EVAL", [1, Buffer.from("d")]);
    expect(wire.open).toEqual(["BLPOP"]);
    await reply("BLPOP", blocked("e", "one"));
    expect(outcomes(...calls, ...more)).toEqual(["a", "b", "c", "d", "e"].map((text) => [text]));
    // Redis knows the script now.
    void [new Call(), new Call()];
    await pass();
    expect(wire.open).toEqual(["EVALSHA", "BLPOP"]);
  });

  test("a waiter that expired before there was a connection gets one pop from all", async () => {
    const call = new Call(3, 20);
    await pass(20);
    await reply("connect");
    await reply("EVALSHA", [2, Buffer.from("a")]);
    expect([call.outcome, wire.names]).toEqual([["a"], ["connect", "EVALSHA"]]);
  });

  test("messages for nobody go back to the list that they came from", async () => {
    const calls = [new Call(), new Call(), new Call()] as const;
    await reply("connect");
    calls[0].abort();
    calls[1].abort();
    await reply("EVALSHA", [0, Buffer.from("a"), 1, Buffer.from("b")]);
    await reply("BLPOP", blocked("c", "one"));
    expect(calls[2].outcome).toEqual(["a"]);
    const backs = [wire.take("EVALSHA"), wire.take("EVALSHA")].map(({ words }) => words);
    expect(backs.map((words) => [words[3], ...valuesIn(words[6])])).toEqual([
      ["two", "b"],
      ["one", "c"],
    ]);
  });

  test("new sources: the block is ended and sent again, and what it brings is delivered", async () => {
    const calls = [new Call()];
    await reply("connect");
    const others = [{ ready: "four", receipts: "r", pauses: new KnownPause(false) }];
    void taker.setSources(others);
    expect(pauses.map(({ listenerCount }) => listenerCount)).toEqual([0, 0, 0]);
    await reply("UNBLOCK", 1);
    await reply("BLPOP", blocked("a", "two"));
    expect(outcomes(...calls)).toEqual([["a"]]);
    void new Call();
    await pass();
    expect(wire.take("BLPOP").words[1]).toEqual(["four"]);
  });

  test("with no sources all wait, until there are some whose pause is known", async () => {
    void taker.setSources([]);
    const call = new Call();
    await pass(60_000);
    expect(wire.names).toEqual([]);
    const pause = new KnownPause();
    pause.ask = async () => void (pause.isPaused = false);
    void taker.setSources([{ ready: "four", receipts: "r", pauses: pause }]);
    await reply("connect");
    await reply("BLPOP", blocked("a", "four"));
    expect(call.outcome).toEqual(["a"]);
  });
});

describe("a block in vain", () => {
  test("is ended: UNBLOCK is sent until the block replies, and never after that", async () => {
    await connect();
    const call = new Call();
    await pass();
    call.abort();
    await pass();
    expect(call.outcome).toBe("aborted");
    // The first one overtook the BLPOP.
    await reply("UNBLOCK", 0);
    expect(wire.open).toEqual(["BLPOP"]);
    await pass(5);
    await reply("UNBLOCK", 1);
    await reply("BLPOP", null);
    await pass(60_000);
    expect(wire.open).toEqual([]);
    expect(errors).toEqual([]);
  });

  test("a message that it brings for nobody goes back", async () => {
    await connect();
    const call = new Call();
    await pass();
    call.abort();
    await reply("BLPOP", blocked("a"));
    expect(await replyToGiveBack()).toEqual(["a"]);
  });

  test("carries a message for a waiter that has expired meanwhile", async () => {
    await connect();
    const call = new Call(1, 20);
    await pass(20);
    expect(wire.open).toEqual(["BLPOP", "UNBLOCK"]);
    await reply("BLPOP", blocked("a"));
    expect(call.outcome).toEqual(["a"]);
  });

  test("is kept when somebody waits again, and ended when that one leaves", async () => {
    await connect();
    const first = new Call();
    await pass();
    first.abort();
    await pass();
    const second = new Call();
    await reply("UNBLOCK", 0);
    await pass(60);
    expect(wire.open).toEqual(["BLPOP"]);

    second.abort();
    await reply("UNBLOCK", 0);
    const third = new Call();
    await reply("BLPOP", blocked("a"));
    expect(third.outcome).toEqual(["a"]);
  });

  test("is ended at once, even while the reply to an earlier UNBLOCK is under way", async () => {
    await connect();
    const first = new Call();
    await pass();
    first.abort();
    await reply("BLPOP", null);
    const second = new Call();
    await pass();
    second.abort();
    await reply("UNBLOCK", 1);
    await pass(5);
    expect(wire.open).toEqual(["BLPOP", "UNBLOCK"]);
  });

  test("that cannot be ended is reported, and tried again", async () => {
    await connect();
    const first = new Call();
    await pass();
    first.abort();
    await fail("UNBLOCK", new Error("lost"));
    expect(errors).toEqual(['cannot end the wait of queue "q": lost']);
    const closing = taker.close();
    await pass(60);
    expect(wire.open).toEqual(["BLPOP", "UNBLOCK"]);
    await reply("UNBLOCK", 1);
    await reply("BLPOP", null);
    await pass(60);
    await closing;
  });
});

describe("a pop that brings more than is wanted by then", () => {
  let calls: [Call, Call, Call];

  beforeEach(async () => {
    await connect();
    calls = [new Call(), new Call(), new Call()];
    await pass();
    expect(wire.open).toEqual(["LPOP", "BLPOP"]);
    calls[0].abort();
    calls[1].abort();
  });

  test("ends the block behind it, and all goes back in order", async () => {
    await reply("LPOP", popped("a", "b"));
    expect(calls[2].outcome).toEqual(["a"]);
    expect(wire.open).toEqual(["BLPOP", "UNBLOCK"]);
    await reply("BLPOP", blocked("c"));
    expect(await replyToGiveBack()).toEqual(["b", "c"]);
  });

  test("ends the block behind it, even if somebody comes, who gets the oldest message", async () => {
    await reply("LPOP", popped("a", "b"));
    const next = new Call();
    await reply("UNBLOCK", 0);
    await pass(5);
    // Still ended: there is already a message for the new one.
    expect(wire.open).toEqual(["BLPOP", "UNBLOCK"]);
    await reply("BLPOP", blocked("c"));
    expect(next.outcome).toEqual(["b"]);
    expect(await replyToGiveBack()).toEqual(["c"]);
  });

  test("keeps its messages although the block behind it fails", async () => {
    await reply("LPOP", popped("a", "b"));
    await fail("BLPOP", new Error("lost"));
    expect(await replyToGiveBack()).toEqual(["b"]);
    expect(errors).toEqual(['cannot take from queue "q": lost']);
  });
});

test("without a block behind it the surplus goes back as well", async () => {
  await connect();
  const call = new Call(5);
  await pass();
  call.abort();
  expect(wire.open).toEqual(["LPOP"]);
  await reply("LPOP", popped("a", "b"));
  expect(await replyToGiveBack()).toEqual(["a", "b"]);
  // Nothing was blocked.
  expect(wire.names).not.toContain("UNBLOCK");
});

test("takes nothing while it gives back", async () => {
  await connect();
  const aborted = new Call();
  await pass();
  aborted.abort();
  await reply("BLPOP", blocked("a"));
  const next = new Call();
  await reply("UNBLOCK", 0);
  await pass(60_000);
  expect(wire.open).toEqual(["EVALSHA"]);
  await replyToGiveBack();
  expect(wire.open).toEqual(["BLPOP"]);
  await reply("BLPOP", blocked("a"));
  expect(next.outcome).toEqual(["a"]);
});

describe("a failure", () => {
  test("of the pop: the block's messages are delivered first", async () => {
    await connect();
    const calls = [new Call(), new Call()];
    await fail("LPOP", refusal("NOPERM no"));
    await reply("BLPOP", blocked("a"));
    expect(outcomes(...calls)).toEqual([["a"], expect.objectContaining({ reply: "NOPERM" })]);
  });

  test("that passes is reported, and the wait goes on over a new connection after a pause", async () => {
    await connect();
    const call = new Call();
    for (const [i, pause] of [100, 200, 400, 500, 500, 500].entries()) {
      await fail(i === 0 ? "BLPOP" : "connect", new Error("lost"));
      await pass(pause - 1);
      expect(wire.open).toEqual([]);
      await pass(1);
      expect(wire.open).toEqual(["connect"]);
    }
    expect(wire.opened.map(({ status }) => status)).toEqual(["end"]);
    await reply("connect");
    await reply("BLPOP", blocked("a"));
    expect(call.outcome).toEqual(["a"]);
    expect(errors).toEqual(Array(6).fill('cannot take from queue "q": lost') as string[]);

    // The next pause is the shortest again.
    const next = new Call();
    await fail("BLPOP", refusal("READONLY no"));
    await pass(100);
    await reply("connect");
    await reply("BLPOP", blocked("b"));
    expect(next.outcome).toEqual(["b"]);
  });

  test("that does not pass rejects all waiters, and the connection is kept", async () => {
    await connect();
    const calls = [new Call(5), new Call()];
    await reply("LPOP", []);
    await fail("BLPOP", refusal("WRONGTYPE no"));
    const failure = expect.objectContaining({ reply: "WRONGTYPE" });
    expect(outcomes(...calls)).toEqual([failure, failure]);
    const next = new Call();
    await reply("BLPOP", blocked("a"));
    expect(next.outcome).toEqual(["a"]);
    expect(errors).toEqual([]);
  });

  test("dismisses expired waiters", async () => {
    await connect();
    const call = new Call(1, 20);
    await pass(20);
    await fail("BLPOP", new Error("lost"));
    expect(call.outcome).toEqual([]);
  });
});

describe("a waiter that expired before there was a connection", () => {
  test("gets one pop when there is, and later ones wait behind it", async () => {
    const call = new Call(3, 20);
    const later = new Call();
    await pass(20);
    expect(call.outcome).toBe("waits");
    await reply("connect");
    expect(wire.open).toEqual(["LPOP"]);
    await reply("LPOP", popped("a", "b"));
    expect(outcomes(call, later)).toEqual([["a", "b"], "waits"]);
    expect(wire.open).toEqual(["BLPOP"]);
  });

  test("with several sources gets messages of the first that has any", async () => {
    taker = newTaker("one", "two", "three");
    const call = new Call(3, 20);
    await pass(20);
    await reply("connect");
    await reply("LPOP", null);
    expect(wire.open).toEqual(["LPOP"]);
    await reply("LPOP", popped("a"));
    expect(call.outcome).toEqual(["a"]);
    expect(wire.names).toEqual(["connect", "LPOP", "LPOP"]);
  });

  test("fails with the connection", async () => {
    const call = new Call(1, 20);
    await pass(20);
    await fail("connect", new Error("refused"));
    expect(call.outcome).toMatchObject({
      message: 'cannot take from queue "q" (nothing was sent, so nothing was taken): refused',
      effect: "none",
    });
  });

  test("gets none, at once, if its pop fails", async () => {
    const call = new Call(1, 20);
    await pass(20);
    await reply("connect");
    await fail("LPOP", new Error("lost"));
    expect(call.outcome).toEqual([]);
    expect(errors).toEqual(['cannot take from queue "q": lost']);
  });

  test("gets none when the messages given back were all that was under way", async () => {
    await connect();
    const aborted = new Call();
    await pass();
    aborted.abort();
    await reply("BLPOP", blocked("a"));
    const call = new Call(1, 20);
    await pass(20);
    expect(call.outcome).toBe("waits");
    await replyToGiveBack();
    expect(call.outcome).toEqual([]);
  });
});

describe("a paused queue", () => {
  test("before the first wait: its pause is asked for, and nothing is sent until it is resumed", async () => {
    taker = newTaker("q");
    const [pause] = (pauses = [new KnownPause()]);
    let tell: (() => void) | undefined;
    pause.ask = () => new Promise((resolve) => (tell = resolve));
    taker = new Taker([{ ready: "q", receipts: "receipts", pauses: pause }], {
      connections: wire.connections,
      report: ({ message }: DelaylineError) => errors.push(message),
      troubles: troublesIn(errors),
      unreachableTimeout: 1000,
    });
    const call = new Call();
    await pass(60_000);
    expect(wire.names).toEqual([]);
    pause.isPaused = true;
    tell?.();
    await pass(60_000);
    expect(wire.names).toEqual([]);
    pause.isPaused = false;
    await reply("connect");
    await reply("BLPOP", blocked("a"));
    expect(call.outcome).toEqual(["a"]);
  });

  test("ends the block; the waiters stay, and are served when it is resumed", async () => {
    await connect();
    const calls = [new Call(), new Call()];
    await reply("LPOP", []);
    pauses[0].isPaused = true;
    await reply("UNBLOCK", 1);
    await reply("BLPOP", null);
    await pass(60_000);
    expect(wire.open).toEqual([]);
    expect(outcomes(...calls)).toEqual(["waits", "waits"]);
    pauses[0].isPaused = false;
    // Messages may have arrived meanwhile: a pop for the first, a blocking call for the last.
    await reply("LPOP", popped("a"));
    await reply("BLPOP", blocked("b"));
    expect(outcomes(...calls)).toEqual([["a"], ["b"]]);
  });

  test("a message that is already on its way is handed out", async () => {
    await connect();
    const calls = [new Call(), new Call()];
    await pass();
    pauses[0].isPaused = true;
    await reply("LPOP", popped("a"));
    await reply("BLPOP", blocked("b"));
    expect(outcomes(...calls)).toEqual([["a"], ["b"]]);
    const next = new Call();
    await pass(60_000);
    expect(next.outcome).toBe("waits");
    expect(wire.open).toEqual(["UNBLOCK"]);
  });

  test("a message for nobody goes back, and no block follows", async () => {
    await connect();
    const call = new Call();
    await pass();
    pauses[0].isPaused = true;
    call.abort();
    await reply("BLPOP", blocked("a"));
    expect(await replyToGiveBack()).toEqual(["a"]);
    const next = new Call();
    await reply("UNBLOCK", 0);
    await pass(60_000);
    expect(wire.open).toEqual([]);
    expect(next.outcome).toBe("waits");
  });

  test("resumed before the block has ended: it still ends, and another follows", async () => {
    await connect();
    const call = new Call();
    await pass();
    pauses[0].isPaused = true;
    pauses[0].isPaused = false;
    await reply("UNBLOCK", 1);
    await reply("BLPOP", null);
    await reply("BLPOP", blocked("a"));
    expect(call.outcome).toEqual(["a"]);
  });

  test("a waiter with a timeout gets none at its end, connected or not", async () => {
    pauses[0].isPaused = true;
    const alone = new Call(1, 20);
    await pass(19);
    expect(alone.outcome).toBe("waits");
    await pass(1);
    expect(alone.outcome).toEqual([]);
    const [first, second, third] = [new Call(1, 20), new Call(1, 30), new Call()];
    await pass(30);
    expect(outcomes(first, second, third)).toEqual([[], [], "waits"]);
    expect(wire.names).toEqual([]);
  });

  test("a waiter that expires before the pause is known gets none as soon as it is", async () => {
    const pause = pauses[0];
    const late = new Call(1, 20);
    await pass(20);
    expect(wire.open).toEqual(["connect"]);
    pause.isPaused = true;
    await reply("connect");
    expect(late.outcome).toEqual([]);
    expect(wire.open).toEqual([]);
  });

  test("waits are aborted, and closing ends them", async () => {
    pauses[0].isPaused = true;
    const [aborted, closed] = [new Call(), new Call()];
    await pass();
    aborted.abort();
    await taker.close();
    await pass();
    expect(aborted.outcome).toBe("aborted");
    expect(closed.outcome).toBeInstanceOf(ClosedError);
    expect(wire.names).toEqual([]);
  });

  test("of several: the block names the others only, until it is resumed", async () => {
    taker = newTaker("one", "two");
    pauses[0].isPaused = true;
    const call = new Call();
    await reply("connect");
    await pass();
    expect(wire.take("BLPOP").words[1]).toEqual(["two"]);
    void call;
  });

  test("of several: pausing or resuming one sends the block again", async () => {
    taker = newTaker("one", "two");
    const call = new Call();
    await reply("connect");
    pauses[1]!.isPaused = true;
    await reply("UNBLOCK", 1);
    await reply("BLPOP", null);
    const blocking = wire.take("BLPOP");
    expect(blocking.words[1]).toEqual(["one"]);
    pauses[1]!.isPaused = false;
    await pass(5);
    await reply("UNBLOCK", 1);
    blocking.reply(null);
    await pass();
    const again = wire.take("BLPOP");
    expect(again.words[1]).toEqual(["one", "two"]);
    again.reply(blocked("a", "two"));
    await pass();
    expect(call.outcome).toEqual(["a"]);
  });

  test("whose pause cannot be read: a failure like any other", async () => {
    const failures = [new Error("lost"), refusal("NOPERM no")];
    const pause = new KnownPause();
    pause.ask = async () => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
    };
    taker = new Taker([{ ready: "q", receipts: "receipts", pauses: pause }], {
      connections: wire.connections,
      report: ({ message }: DelaylineError) => errors.push(message),
      troubles: troublesIn(errors),
      unreachableTimeout: 1000,
    });
    const call = new Call();
    await pass(50);
    expect(errors).toEqual(['cannot take from queue "q": lost']);
    expect(call.outcome).toBe("waits");
    await pass(100);
    expect(call.outcome).toMatchObject({ reply: "NOPERM" });
    expect(wire.names).toEqual([]);
  });
});

describe("closing", () => {
  test("ends every wait and the block, and then the connection", async () => {
    await connect();
    const calls = [new Call(), new Call()];
    await reply("LPOP", null);
    let isClosed = false;
    void taker.close().then(() => (isClosed = true));
    await pass();
    for (const { outcome } of calls) expect(outcome).toBeInstanceOf(ClosedError);
    expect(wire.open).toEqual(["BLPOP", "UNBLOCK"]);
    await reply("UNBLOCK", 1);
    await reply("BLPOP", null);
    expect(isClosed).toBe(false);
    expect(wire.opened[0]?.status).toBe("ready");
    await pass(5);
    expect(isClosed).toBe(true);
    expect(wire.opened[0]?.status).toBe("end");
    // Nothing new begins.
    const late = new Call();
    await pass(60_000);
    expect(late.outcome).toBeInstanceOf(ClosedError);
    expect(wire.open).toEqual([]);
  });

  test("waits until messages have gone back and their receipt is removed", async () => {
    await connect();
    void new Call();
    await pass();
    let isClosed = false;
    void taker.close().then(() => (isClosed = true));
    await reply("UNBLOCK", 1);
    await reply("BLPOP", blocked("a"));
    await pass(5);
    await reply("EVALSHA", 1);
    expect(isClosed).toBe(false);
    await reply("ZREM", 1);
    expect(isClosed).toBe(true);
  });

  test("ends a pause between attempts, and reports nothing more", async () => {
    void new Call();
    await fail("connect", new Error("refused"));
    await taker.close();
    expect(errors).toHaveLength(1);
    expect(wire.names).toEqual(["connect"]);
  });

  test("while it connects: does not report that it failed", async () => {
    void new Call();
    await pass();
    const closing = taker.close();
    await fail("connect", new Error("refused"));
    await closing;
    expect(errors).toEqual([]);
  });

  test("closes twice though it was never used", async () => {
    await taker.close();
    await taker.close();
    expect(wire.names).toEqual([]);
  });

  test("closes twice at once", async () => {
    await connect();
    void new Call();
    await pass();
    const closings = [taker.close(), taker.close()];
    await reply("UNBLOCK", 1);
    await reply("BLPOP", null);
    await pass(5);
    await Promise.all(closings);
    expect(errors).toEqual([]);
  });
});
