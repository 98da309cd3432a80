import { describe, expect, it } from "vitest";
import { judge, type Promises } from "../../simulation/ledger.ts";
import type { Noted } from "../../simulation/sim.ts";

const PLAIN: Promises = {
  queue: "q",
  kind: "plain",
  groups: [""],
  capacity: 1,
  inOrder: true,
};

const RELIABLE: Promises = {
  queue: "q",
  kind: "reliable",
  groups: ["g"],
  capacity: 0,
  maxAttempts: 3,
  retry: [1000],
};

/** A history that is made up. The server's clock shows the milliseconds that have elapsed. */
class History {
  readonly #noted: Noted[] = [];
  #at = 0;
  #call = 0;
  #delivery = 0;
  #offset = 0;

  /** Lets time pass. */
  wait(duration: number): this {
    this.#at += duration;
    return this;
  }

  add(event: Record<string, unknown>, process?: string): this {
    const all = "fault" in event ? event : { queue: "q", ...event, now: this.#at + this.#offset };
    this.#noted.push({ at: this.#at, step: this.#noted.length, process, event: all });
    return this;
  }

  /** Sets the server's clock. */
  step(duration: number): this {
    this.#offset += duration;
    return this.add({ fault: "clock-step", duration });
  }

  /** A call that takes a millisecond. Without an answer it is still under way. */
  call(by: string, verb: string, args: object, end?: object): this {
    const call = ++this.#call;
    this.add({ ...args, call, by, do: verb });
    this.wait(1);
    return end === undefined ? this : this.add({ ...end, call });
  }

  /** An offer that was accepted; its id ends with the number of the message. */
  offer(by: string, n: number, delay: number, terms: object = {}, outcome = "added"): this {
    const deadline = this.#at + this.#offset + delay;
    const answer = { id: `${deadline}-${n}`, deadline, outcome };
    return this.call(by, "offer", { ...terms, n, delay }, { answer });
  }

  /** A message reaches a process; returns the history. The number of the delivery counts from 1. */
  get(by: string, n: number, details: object = {}): this {
    return this.add({ ...details, got: n, delivery: ++this.#delivery, by });
  }

  /** A delivery of a reliable queue. */
  take(by: string, n: number, attempt = 1, details: object = {}): this {
    return this.get(by, n, { group: "g", attempt, failures: attempt - 1, ...details });
  }

  handlerEnded(delivery: number, how: string): this {
    return this.add({ handlerEnded: delivery, how });
  }

  judge(promises: Promises): string[] {
    return judge(this.#noted, promises);
  }
}

const history = () => new History();

describe("a plain queue", () => {
  it("keeps its promises", () => {
    const good = history()
      .offer("p", 1, 10)
      .offer("p", 2, 0, { key: "k" })
      .get("t", 2)
      .wait(20)
      .get("t", 1)
      .offer("p", 3, 100, { key: "k" })
      .call("p", "cancel", { target: "k" }, { answer: true })
      .call("p", "cancel", { target: "k" }, { answer: false });
    expect(good.judge(PLAIN)).toEqual([]);
  });

  it("loses nothing", () => {
    expect(history().offer("p", 1, 10).wait(100).judge(PLAIN)).toEqual([
      expect.stringContaining("lost: message 1"),
    ]);
    const unknown = history().call("p", "offer", { n: 1, delay: 5 });
    const failed = history().call(
      "p",
      "offer",
      { n: 1, delay: 5 },
      { error: "CLOSED", effect: "none" },
    );
    expect([...unknown.add({ fault: "crash" }, "p").judge(PLAIN), ...failed.judge(PLAIN)]).toEqual(
      [],
    );
  });

  it("loses no more with a process than was on its way to it, and nothing that was not due", () => {
    const taking = threeOffered().get("t", 2).call("t", "take", {});
    const due = taking.add({ fault: "crash" }, "t").wait(600).get("u", 3);
    expect(lossesOf(due)).toBe(0);
    const both = threeOffered().call("t", "take", {});
    expect(lossesOf(both.add({ fault: "crash" }, "t").wait(600).get("u", 3))).toBe(1);
    const idle = threeOffered().get("t", 2).add({ fault: "crash" }, "t").wait(600).get("u", 3);
    expect(lossesOf(idle)).toBe(1);
    const later = threeOffered().get("t", 1).get("t", 2).call("t", "take", {});
    expect(lossesOf(later.add({ fault: "crash" }, "t").wait(600))).toBe(1);
  });

  it("loses with a failover only what was done since the copy was made", () => {
    const lateOffer = history().offer("p", 1, 10).wait(100);
    expect(lateOffer.add({ fault: "failover", since: 0 }).judge(PLAIN)).toEqual([]);
    const old = history().offer("p", 1, 500).wait(100).add({ fault: "failover", since: 50 });
    expect(old.wait(1000).judge(PLAIN)).toEqual([expect.stringContaining("lost: message 1")]);
  });

  describe("that is restored from an older copy", () => {
    it("delivers again what the copy holds", () => {
      expect(restoredAndTold().judge(PLAIN)).toEqual([expect.stringContaining("lost: message 1")]);
      const again = restoredAndTold().get("t", 1).wait(20_000);
      expect(again.judge(PLAIN)).toEqual([]);
      expect(again.get("t", 1).judge(PLAIN)).toEqual([expect.stringContaining("twice: message 1")]);
    });

    it("is told once by whoever remembers, unless another process has moved first", () => {
      const silent = restoredOnce().get("t", 1).wait(20_000);
      expect(silent.judge(PLAIN)).toEqual([expect.stringContaining("t tells it 0 times")]);
      const hidden = restoredOnce().add({ moved: 1 }, "u").wait(1000).get("t", 1).wait(20_000);
      expect(hidden.judge(PLAIN)).toEqual([]);
      const alarm = history().wait(6000).add({ restored: true, by: "t" });
      expect(alarm.judge(PLAIN)).toEqual([expect.stringContaining("alarm 1 of t")]);
      const failover = history().wait(900).add({ fault: "failover", since: 0 });
      expect(failover.add({ restored: true, by: "t" }).judge(PLAIN)).toHaveLength(1);
    });

    it("rests until it is resumed", () => {
      const promises = { ...PLAIN, onRestore: "pause" } as const;
      const early = restoredAndTold().wait(4000).add({ moved: 1 }, "t").get("t", 1).wait(20_000);
      expect(early.judge(PLAIN)).toEqual([]);
      expect(early.judge(promises)).toEqual([
        expect.stringContaining("t moves at"),
        expect.stringContaining("t takes 1 at"),
      ]);
      const late = restoredAndTold().wait(4000).call("o", "resume", {}, { answer: true });
      expect(late.add({ moved: 1 }, "t").get("t", 1).wait(20_000).judge(promises)).toEqual([]);
    });
  });

  it("delivers once, unless the offer may have been sent again", () => {
    const twice = history().offer("p", 1, 0).get("t", 1).get("u", 1);
    expect(twice.judge(PLAIN)).toEqual([expect.stringContaining("twice: message 1")]);
    const again = history()
      .add({ fault: "cut", connection: "p.commands#1" })
      .offer("p", 1, 0)
      .get("t", 1)
      .get("u", 1);
    expect(again.judge(PLAIN)).toEqual([]);
    const other = history()
      .add({ fault: "cut", connection: "t.blocking#1" })
      .offer("p", 1, 0)
      .get("t", 1)
      .get("u", 1);
    expect(other.judge(PLAIN)).toEqual([expect.stringContaining("twice: message 1")]);
  });

  it("delivers nothing early, whichever deadline holds", () => {
    expect(history().offer("p", 1, 100).wait(98).get("t", 1).judge(PLAIN)).toEqual([
      expect.stringContaining("early by 1.00 ms"),
    ]);
    const answer = { id: "900-1", deadline: 900 };
    const later = history()
      .offer("p", 1, 100)
      .call("p", "reschedule", { target: "100-1", delay: 800 }, { answer })
      .wait(500)
      .get("t", 1);
    expect(later.judge(PLAIN)).toEqual([expect.stringContaining("early by 398.00 ms")]);
    const stepped = history().offer("p", 1, 500).step(600).step(-600).get("t", 1);
    expect(stepped.judge(PLAIN)).toEqual([]);
  });

  it("takes the deadline from the server's clock", () => {
    const answer = { id: "150-1", deadline: 150, outcome: "added" };
    const wrong = history().call("p", "offer", { n: 1, delay: 100 }, { answer });
    expect(wrong.wait(100).get("t", 1).judge(PLAIN)).toEqual([
      expect.stringContaining("early"),
      expect.stringContaining("deadline: message 1"),
    ]);
  });

  it("keeps the order of deadlines, and of the offers of a producer", () => {
    const offers = () => history().offer("p", 1, 200).offer("p", 2, 100).wait(300);
    expect(offers().get("t", 2).get("t", 1).judge(PLAIN)).toEqual([]);
    expect(offers().get("t", 1).get("t", 2).judge(PLAIN)).toEqual([
      expect.stringContaining("order: message 1"),
    ]);
    expect(offers().get("t", 1).get("u", 2).judge(PLAIN)).toEqual([]);
    const equal = history().offer("p", 1, 100).offer("p", 2, 99).wait(300);
    expect(equal.get("t", 2).get("t", 1).judge(PLAIN)).toEqual([
      expect.stringContaining("order: message 2"),
    ]);
    const late = history().offer("p", 1, 0).wait(5).offer("p", 2, 0);
    expect(late.get("t", 1).get("t", 2).judge(PLAIN)).toEqual([]);
  });

  it("leaves nothing to the last reader", () => {
    const stuck = history().offer("p", 1, 0).get("last", 1, { isLast: true });
    expect(stuck.judge(PLAIN)).toEqual([expect.stringContaining("stuck")]);
  });

  it("never delivers what it has refused, or nobody has offered", () => {
    const failure = { error: "OFFER", effect: "none" };
    const refused = history()
      .add({ fault: "rights" })
      .call("p", "offer", { n: 1, delay: 0 }, failure)
      .get("t", 1);
    expect(refused.judge(PLAIN)).toContainEqual(
      expect.stringContaining("delivered though not-stored"),
    );
    const rejected = history()
      .offer("p", 1, 100, { key: "k" })
      .call(
        "p",
        "offer",
        { n: 2, delay: 0, key: "k" },
        { answer: { id: "100-1", deadline: 100, outcome: "existing" } },
      )
      .wait(200)
      .get("t", 1)
      .get("t", 2);
    expect(rejected.judge(PLAIN)).toContainEqual(
      expect.stringContaining("delivered though rejected"),
    );
    expect(history().get("t", 7).judge(PLAIN)).toEqual([expect.stringContaining("unknown")]);
  });

  it("never delivers what was cancelled, and cancels once", () => {
    const cancel = { target: "100-1" };
    const cancelled = () => history().offer("p", 1, 100).call("p", "cancel", cancel, YES);
    expect(cancelled().judge(PLAIN)).toEqual([]);
    expect(cancelled().wait(200).get("t", 1).judge(PLAIN)).toContainEqual(
      expect.stringContaining("cancelled: message 1"),
    );
    expect(cancelled().call("q", "cancel", cancel, YES).judge(PLAIN)).toContainEqual(
      expect.stringContaining("cancelled twice"),
    );
    const byKey = history()
      .offer("p", 1, 100, { key: "k" })
      .call("p", "cancel", { target: "k" }, YES)
      .wait(200)
      .get("t", 1);
    expect(byKey.judge(PLAIN)).toEqual([expect.stringContaining("not taken away: of k")]);
  });

  it("finds what waits", () => {
    for (const [verb, answer] of [
      ["cancel", false],
      ["reschedule", null],
      ["get", null],
      ["has", false],
    ] as const) {
      const target = verb === "has" ? "k" : "100-1";
      const missed = history()
        .offer("p", 1, 100, { key: "k" })
        .call("q", verb, { target }, { answer });
      expect(missed.wait(200).get("t", 1).judge(PLAIN)).toEqual([
        expect.stringContaining(`wrong no: ${verb}`),
      ]);
      const due = history().offer("p", 1, 1, { key: "k" }).wait(5);
      expect(due.call("q", verb, { target }, { answer }).get("t", 1).judge(PLAIN)).toEqual([]);
    }
  });

  it("knows who holds a key", () => {
    const second = { key: "k", onDuplicate: "replace" };
    expect(
      delayed().offer("q", 2, 100, second).wait(200).get("t", 1).get("t", 2).judge(PLAIN),
    ).toEqual([expect.stringContaining("was added while message 1")]);
    expect(
      delayed().offer("q", 2, 100, second, "replaced").wait(200).get("t", 2).judge(PLAIN),
    ).toEqual([]);
    const both = delayed().offer("q", 2, 100, second, "replaced").wait(200).get("t", 1).get("t", 2);
    expect(both.judge(PLAIN)).toEqual([expect.stringContaining("not taken away")]);
    const free = delayed().wait(200).get("t", 1).offer("q", 2, 0, second, "replaced").get("t", 2);
    expect(free.judge(PLAIN)).toContainEqual(expect.stringContaining("though nobody held the key"));
    const answer = { id: "100-77", deadline: 100, outcome: "existing" };
    const stranger = delayed().call("q", "offer", { n: 2, delay: 0, key: "k" }, { answer });
    expect(stranger.wait(200).get("t", 1).judge(PLAIN)).toEqual([
      expect.stringContaining("which nobody offered"),
    ]);
  });

  it("moves nothing during a pause", () => {
    const paused = () =>
      history().offer("p", 1, 100).call("p", "pause", {}, { answer: null }).wait(200);
    expect(paused().get("t", 1).judge(PLAIN)).toEqual([
      expect.stringContaining("delivered in a pause"),
    ]);
    expect(paused().call("q", "resume", {}).get("t", 1).judge(PLAIN)).toEqual([
      expect.stringContaining("hangs: resume"),
    ]);
    const ready = history().offer("p", 1, 0).call("p", "pause", {}, { answer: null });
    expect(ready.get("t", 1).judge(PLAIN)).toEqual([]);
    const long = history().offer("p", 1, 0).call("p", "pause", {}, { answer: null }).wait(70_000);
    expect(long.get("t", 1).judge(PLAIN)).toEqual([
      expect.stringContaining("long after the pause"),
    ]);
  });

  it("settles every call in time, and says why one failed", () => {
    const cancel = { target: "nothing" };
    expect(history().call("p", "cancel", cancel).judge(PLAIN)).toEqual([
      expect.stringContaining("hangs: cancel"),
    ]);
    expect(history().call("p", "cancel", cancel).add({ fault: "crash" }, "p").judge(PLAIN)).toEqual(
      [],
    );
    const slow = history()
      .add({ call: 9, by: "p", do: "cancel", ...cancel })
      .wait(8000);
    expect(slow.add({ call: 9, answer: false }).judge(PLAIN)).toEqual([
      expect.stringContaining("slow: cancel"),
    ]);
    const failure = (error: string) =>
      history().call("p", "cancel", cancel, { error, effect: "none" });
    expect(failure("REDIS").judge(PLAIN)).toEqual([expect.stringContaining("error: cancel")]);
    expect(failure("TypeError").judge(PLAIN)).toEqual([expect.stringContaining("unknown error")]);
    expect(failure("REDIS").add({ fault: "script-flush" }).judge(PLAIN)).toEqual([]);
    const trouble = history().add({ trouble: "REDIS", by: "p", message: "" });
    expect(trouble.judge(PLAIN)).toEqual([expect.stringContaining("trouble of p")]);
  });
});

describe("a reliable queue", () => {
  it("keeps its promises", () => {
    const good = offered()
      .take("t", 1, 1, key)
      .handlerEnded(1, "threw")
      .wait(1000)
      .take("u", 1, 2, key)
      .handlerEnded(2, "returned");
    expect(good.judge(RELIABLE)).toEqual([]);
  });

  it("handles each message to its end, also if processes crash", () => {
    const crashed = offered().take("t", 1, 1, key).add({ fault: "crash" }, "t").wait(60_000);
    expect(crashed.judge(RELIABLE)).toEqual([expect.stringContaining("lost: 1 of k")]);
    expect(crashed.take("u", 1, 2, key).handlerEnded(2, "returned").judge(RELIABLE)).toEqual([]);
  });

  it("lets a dead letter go only if it was not redriven", () => {
    const dead = { dead: 1, group: "g", attempt: 3, reason: "" };
    const died = () => {
      const all = offered();
      for (let i = 1; i <= 3; i++) all.take("t", 1, i, key).handlerEnded(i, "threw").wait(1000);
      return all.add(dead);
    };
    expect(died().judge(RELIABLE)).toEqual([]);
    expect(died().call("p", "redrive", {}, { answer: 1 }).judge(RELIABLE)).toEqual([
      expect.stringContaining("lost: 1 of k"),
    ]);
    expect(
      offered()
        .take("t", 1, 1, key)
        .add({ ...dead, attempt: 1 })
        .judge(RELIABLE),
    ).toEqual([expect.stringContaining("died too early")]);
    const done = ack(offered().take("t", 1, 1, key)).add(dead);
    expect(done.judge(RELIABLE)).toEqual([expect.stringContaining("dead after its ack")]);
  });

  it("makes each attempt once, for a reason", () => {
    const acknowledged = ack(offered().take("t", 1, 1, key)).take("u", 1, 2, key);
    expect(acknowledged.handlerEnded(2, "returned").judge(RELIABLE)).toEqual([
      expect.stringContaining("handled again after its ack"),
    ]);
    const stolen = offered().take("t", 1, 1, key).take("u", 1, 2, key).handlerEnded(2, "returned");
    expect(stolen.judge(RELIABLE)).toEqual([
      expect.stringContaining("handled again without a reason"),
    ]);
    const same = offered()
      .take("t", 1, 1, key)
      .handlerEnded(1, "threw")
      .wait(1000)
      .take("u", 1, 1, key)
      .handlerEnded(2, "returned");
    expect(same.judge(RELIABLE)).toEqual([expect.stringContaining("attempt made again")]);
    const cut = offered()
      .take("t", 1, 1, key)
      .handlerEnded(1, "cut short")
      .take("u", 1, 1, key)
      .handlerEnded(2, "returned");
    expect(cut.judge(RELIABLE)).toEqual([]);
    expect(offered().take("t", 1, 2, key).handlerEnded(1, "returned").judge(RELIABLE)).toEqual([
      expect.stringContaining("attempt without those before it"),
    ]);
    const many = offered()
      .add({ fault: "crash" }, "x")
      .take("t", 1, 4, key)
      .handlerEnded(1, "returned");
    expect(many.judge(RELIABLE)).toEqual([expect.stringContaining("more than maxAttempts")]);
    const failures = { ...key, failures: 2 };
    expect(offered().take("t", 1, 1, failures).handlerEnded(1, "returned").judge(RELIABLE)).toEqual(
      [expect.stringContaining("2 failures")],
    );
  });

  it("takes no older delivery for a retry, which a process hands out after it stood still", () => {
    expect(found(nextAttempt(1), "retry early", RELIABLE)).toEqual([]);
    expect(found(nextAttempt(2), "retry early", RELIABLE)).toHaveLength(1);
  });

  it("lets a retry wait as long as it should", () => {
    const early = offered()
      .take("t", 1, 1, key)
      .handlerEnded(1, "threw")
      .wait(900)
      .take("t", 1, 2, key);
    expect(early.handlerEnded(2, "returned").judge(RELIABLE)).toEqual([
      expect.stringContaining("retry early by 100.00 ms"),
    ]);
    const nacked = offered()
      .take("t", 1, 1, key)
      .call("t", "nack", { delivery: 1, delay: 50 }, YES)
      .wait(20)
      .take("t", 1, 2, key);
    expect(nacked.handlerEnded(2, "returned").judge(RELIABLE)).toEqual([
      expect.stringContaining("retry early by 29.00 ms"),
    ]);
  });

  it("refuses a settlement only if the lease is gone", () => {
    const refused = ack(offered().take("t", 1, 1, key), false).handlerEnded(1, "returned");
    expect(refused.judge(RELIABLE)).toEqual([expect.stringContaining("ack refused")]);
    const stalled = offered().take("t", 1, 1, key).add({ fault: "stall", duration: 9 }, "t");
    expect(ack(stalled, false).handlerEnded(1, "returned").judge(RELIABLE)).toEqual([]);
  });

  it("keeps ids and keys", () => {
    const other = offered().take("t", 1, 1, { key: "x", id: "0-1" }).handlerEnded(1, "returned");
    expect(other.judge(RELIABLE)).toEqual([expect.stringContaining("key x")]);
    const id = offered().take("t", 1, 1, { key: "k", id: "0-2" }).handlerEnded(1, "returned");
    expect(id.judge(RELIABLE)).toEqual([expect.stringContaining("id 0-2")]);
  });
});

describe("a queue without trouble", () => {
  it("delivers what is due to a consumer that waits", () => {
    expect(found(takerAhead().wait(1000).get("t", 1), "late")).toEqual([]);
    expect(found(takerAhead().wait(2000).get("t", 1), "late")).toEqual([
      expect.stringContaining("late by 1901 ms: message 1"),
    ]);
    const busy = history().offer("p", 1, 100).wait(1500).call("t", "take", {}).wait(500);
    expect(found(busy.get("t", 1), "late")).toEqual([]);
    const paused = takerAhead().call("p", "pause", {}, { answer: null }).wait(2000);
    paused.call("p", "resume", {}, { answer: null });
    expect(found(paused.wait(20).get("t", 1), "late")).toEqual([]);
  });

  it("may be late after a fault, and after a step of the clock until the next message or sweep", () => {
    const deaf = takerAhead().add({ fault: "deaf", connection: "t.subscriber#1" }).wait(2000);
    expect(found(deaf.get("t", 1), "late")).toEqual([]);
    expect(found(dueByStep().wait(60_000).get("t", 1), "late")).toEqual([]);
    const next = dueByStep().wait(10).offer("p", 2, 1000).wait(3000).get("t", 2);
    expect(found(next, "late")).toEqual([expect.stringContaining("late by 2001 ms: message 2")]);
    expect(found(dueByStep().wait(62_000).get("t", 1), "late")).toEqual([
      expect.stringContaining("late by 2000 ms"),
    ]);
  });

  it("gets offers in the order in which they were made", () => {
    expect(outOfTurn(100, 101)).toEqual([]);
    expect(outOfTurn(101, 100)).toEqual([expect.stringContaining("message 1 of p arrived before")]);
  });

  it("excuses two offers that were under way while Redis forgot the scripts, if another process offered meanwhile", () => {
    expect(turned(true, "q")).toEqual([]);
    expect(turned(false, "q")).toHaveLength(1);
    expect(turned(true, "p")).toHaveLength(1);
  });

  it("gives nothing to a call that begins during a pause", () => {
    expect(found(pausedQueue().call("t", "poll", {}).get("t", 1), "taken in")).toEqual([]);
    const late = pausedQueue().wait(1000).call("t", "poll", {}).get("t", 1);
    expect(found(late, "taken in")).toEqual([expect.stringContaining("taken in a pause")]);
  });

  it("says no to whoever has lost the message", () => {
    expect(found(extended(false), "lost lease", RELIABLE)).toEqual([]);
    expect(found(extended(true), "lost lease", RELIABLE)).toEqual([
      "extend of a lost lease: message 1 at 1 ms in t, group g, attempt 1",
    ]);
  });
});

describe("one consumer per key", () => {
  const exclusive: Promises = { ...RELIABLE, isExclusive: true, isStrict: true };
  it("keeps its promises", () => {
    const good = two()
      .take("t", 1, 1, { fence: 5 })
      .handlerEnded(1, "threw")
      .wait(1000)
      .take("u", 1, 2, { fence: 6 })
      .handlerEnded(2, "returned")
      .take("u", 2, 1, { fence: 6 })
      .handlerEnded(3, "returned");
    expect(good.judge(exclusive)).toEqual([]);
  });

  it("runs one handler at a time, unless a process stood still", () => {
    expect(overlapping().judge(exclusive)).toEqual([expect.stringContaining("two handlers")]);
    expect(overlapping({ fault: "stall", duration: 9 }).judge(exclusive)).toEqual([]);
  });

  it("aborts the signal of a handler before the next one begins, but after two steps of the clock", () => {
    const aborted = two().take("t", 1).add({ aborted: 1 }).take("u", 2);
    expect(found(aborted, "two handlers", exclusive)).toEqual([]);
    expect(found(steppedTwice(2500), "two handlers", exclusive)).toEqual([]);
    expect(found(steppedTwice(2501), "two handlers", exclusive)).toHaveLength(1);
    const other = two().add({ fault: "cut", connection: "t.background#1" });
    expect(found(other.take("t", 1).take("u", 2), "two handlers", exclusive)).toHaveLength(1);
  });

  it("counts no attempt that nobody has made", () => {
    expect(found(diedInPause(999), "counted", exclusive)).toEqual([
      expect.stringContaining("counted and not tried: message 1"),
    ]);
    expect(found(diedInPause(1000), "counted", exclusive)).toEqual([]);
  });

  it("never lets a fence fall", () => {
    const falls = two()
      .take("t", 1, 1, { fence: 5 })
      .handlerEnded(1, "returned")
      .take("u", 2, 1, { fence: 4 })
      .handlerEnded(2, "returned");
    expect(falls.judge(exclusive)).toEqual([expect.stringContaining("fence 4 after 5")]);
  });

  it("keeps the order of a key", () => {
    const overtaken = two()
      .take("t", 2, 1, { fence: 5 })
      .handlerEnded(1, "returned")
      .take("t", 1, 1, { fence: 5 })
      .handlerEnded(2, "returned");
    expect(overtaken.judge(exclusive)).toEqual([
      expect.stringContaining("strict order: message 2"),
    ]);
    expect(overtaken.judge({ ...exclusive, isStrict: false })).toEqual([]);
    const redriven = two()
      .add({ dead: 1, group: "g", attempt: 3, reason: "" })
      .take("t", 2)
      .call("p", "redrive", {}, { answer: 1 })
      .take("t", 1);
    expect(found(redriven, "strict order", exclusive)).toEqual([]);
  });

  it("keeps the sequences of orderBy in each process", () => {
    const sequences: Promises = { ...RELIABLE, isOrderedBy: true };
    expect(sharingSequence("t").judge(sequences)).toEqual([
      expect.stringContaining("two handlers"),
    ]);
    expect(sharingSequence("u").judge(sequences)).toEqual([]);
  });
});

describe("conditions", () => {
  const onlyIf = { key: "status", is: "unpaid" };
  const paid = { guard: "status", state: "paid" };
  const unpaid = { guard: "status", state: "unpaid" };

  it("lets a message through if its guard held at some instant since the deadline", () => {
    const good = history().add(unpaid).offer("p", 1, 10, { onlyIf }).wait(20).add(paid).get("t", 1);
    expect(good.judge(PLAIN)).toEqual([]);
    const bad = history().add(unpaid).offer("p", 1, 10, { onlyIf }).add(paid).wait(20).get("t", 1);
    expect(bad.judge(PLAIN)).toEqual([expect.stringContaining("against its guard: message 1")]);
  });

  it("knows what each test says of each kind of key", () => {
    expect(said({ is: "a" })).toEqual([false, true, false, true, true]);
    expect(said({ isNot: "a" })).toEqual([true, false, true, true, true]);
    expect(said({ exists: true })).toEqual([false, true, true, true, true]);
    expect(said({ exists: false })).toEqual([true, false, false, false, false]);
    expect(said({ field: "f", is: "a" })).toEqual([false, true, true, true, true]);
    expect(said({ field: "f", exists: false })).toEqual([true, true, true, false, true]);
  });

  it("wants a reason for what was dropped, and no delivery", () => {
    const good = history().add(paid).offer("p", 1, 10, { onlyIf }).wait(20).add(drop(1));
    expect(good.judge(PLAIN)).toEqual([]);
    const bad = history().add(unpaid).offer("p", 1, 10, { onlyIf }).wait(20).add(drop(1));
    expect(bad.judge(PLAIN)).toEqual([expect.stringContaining("without reason dropped by onlyIf")]);
    expect(good.add(unpaid).get("t", 1).judge(PLAIN)).toEqual([
      expect.stringContaining("delivered and dropped"),
    ]);
    const untold = history().add(paid).offer("p", 1, 10, { onlyIf }).wait(20);
    expect(untold.judge(PLAIN)).toEqual([expect.stringContaining("lost: message 1")]);
  });

  it("knows what is late", () => {
    const early = history().offer("p", 1, 10, { deliverWithin: 50 }).wait(30);
    expect(early.add(drop(1, "deliverWithin")).judge(PLAIN)).toEqual([
      expect.stringContaining("without reason dropped by deliverWithin"),
    ]);
    const pausedFor = (duration: number) =>
      history()
        .call("p", "pause", {}, { answer: null })
        .offer("p", 1, 100, { deliverWithin: 50 })
        .wait(duration)
        .call("p", "resume", {}, { answer: null })
        .wait(1)
        .get("t", 1);
    expect(pausedFor(120).judge(PLAIN)).toEqual([]);
    expect(pausedFor(200).judge(PLAIN)).toEqual([expect.stringContaining("too late: message 1")]);
  });

  it("counts what was dropped", () => {
    const told = history().add(paid).offer("p", 1, 10, { onlyIf }).wait(20).add(drop(1));
    const judged = (count: number) =>
      told.judge({ ...PLAIN, dropCounts: { onlyIf: count, deliverWithin: 0 } });
    expect([judged(1), judged(0)]).toEqual([[], [expect.stringContaining("counted: 0 dropped")]]);
    told.add({ fault: "cut", connection: "m.background#1" });
    expect([judged(2), judged(0)]).toEqual([[], [expect.stringContaining("counted: 0 dropped")]]);
  });
});

const YES = { answer: true };

/** How the message of {@link offered} is delivered. */
describe("a retrying message", () => {
  const no = { answer: false };

  it("is found by its id and its key, until it is due", () => {
    const rule = "wrong no";
    expect(found(retrying().call("p", "cancel", { target: "k" }, no), rule, RELIABLE)).toHaveLength(
      1,
    );
    expect(found(retrying().call("p", "has", { target: "0-1" }, no), rule, RELIABLE)).toHaveLength(
      1,
    );
    const due = retrying().wait(600).call("p", "cancel", { target: "k" }, no);
    expect(found(due, rule, RELIABLE)).toEqual([]);
    const older = retrying().call("p", "cancel", { target: "5-1" }, no);
    expect(found(older, rule, RELIABLE)).toEqual([]);
  });

  it("holds its key, unless a newer one has it", () => {
    const again = retrying().offer("p", 2, 0, { key: "k" });
    expect(found(again, "was added while", RELIABLE)).toHaveLength(1);
    const newer = offered()
      .take("t", 1, 1, key)
      .offer("p", 2, 0, { key: "k" })
      .call("t", "nack", { delivery: 1, delay: 500 }, { answer: true })
      .offer("p", 3, 0, { key: "k" });
    expect(found(newer, "was added while", RELIABLE)).toEqual([]);
  });
});

describe("groups", () => {
  it("get each message that became ready after they were founded", () => {
    expect(found(handledBy(twoGroups(), "g", 1), "in group h", TWO_GROUPS)).toHaveLength(1);
    expect(found(handledBy(handledBy(twoGroups(), "g", 1), "h", 2), "lost", TWO_GROUPS)).toEqual(
      [],
    );
    const taken = poll(history(), "g").add({ joins: "g" }).offer("p", 1, 10).wait(20);
    expect(found(poll(handledBy(taken, "g", 1), "h"), "lost", TWO_GROUPS)).toEqual([]);
    const destroyed = twoGroups().call("f", "destroy", { group: "h" }, { answer: 1 });
    expect(found(handledBy(destroyed, "g", 1), "lost", TWO_GROUPS)).toEqual([]);
  });

  it("lose with a failover only what was finished before they were there again", () => {
    expect(found(failedOver(0), "lost", TWO_GROUPS)).toEqual([]);
    expect(found(failedOver(3), "in group h", TWO_GROUPS)).toHaveLength(1);
  });

  it("that begin with new messages get no older ones", () => {
    const old = poll(handledBy(poll(history(), "g").offer("p", 1, 0), "g", 1), "h");
    const promises = { ...TWO_GROUPS, startNew: ["h"] };
    expect(found(handledBy(old, "h", 2), "older than its group", promises)).toHaveLength(1);
  });
});

describe("a queue that becomes reliable, and plain again", () => {
  it("hands out a message again only for a reason", () => {
    expect(
      found(history().offer("p", 1, 0).take("t", 1).get("u", 1), "without a reason", MIXED),
    ).toHaveLength(1);
    const failed = history()
      .offer("p", 1, 0)
      .take("t", 1)
      .handlerEnded(1, "threw")
      .wait(1000)
      .get("u", 1);
    expect(failed.judge(MIXED)).toEqual([]);
    expect(
      found(history().offer("p", 1, 0).get("u", 1).take("t", 1), "after it was taken", MIXED),
    ).toHaveLength(1);
  });

  it("loses a message with those who take plainly, and with no others", () => {
    expect(found(crashedTaking({}), "lost", { ...MIXED, capacity: 1 })).toEqual([]);
    expect(found(crashedTaking({ group: "g" }), "lost", { ...MIXED, capacity: 1 })).toHaveLength(1);
  });
});

const key = { key: "k", id: "0-1" };

const TWO_GROUPS: Promises = { ...RELIABLE, groups: ["g", "h"] };

const MIXED: Promises = { ...RELIABLE, kind: "mixed" };

/** The first attempt has failed, and the message retries in half a second. */
function retrying(): History {
  return offered()
    .take("t", 1, 1, key)
    .call("t", "nack", { delivery: 1, delay: 500 }, { answer: true });
}

/** Creates a group. */
function poll(all: History, group: string): History {
  return all.call("f", "poll", { group }, { answer: null });
}

/** A group is done with the first message. */
function handledBy(all: History, group: string, number: number): History {
  return all.take("t", 1, 1, { group, id: "0-1" }).handlerEnded(number, "returned");
}

function twoGroups(): History {
  return poll(poll(history(), "g"), "h").offer("p", 1, 10).wait(20);
}

/** A message waits while a copy is made, is delivered, and then the copy is restored. */
function restoredOnce(): History {
  const handled = history().offer("p", 1, 200).wait(500).get("t", 1).wait(9500);
  return handled.add({ fault: "failover", since: 100, remembering: ["t"] }).wait(100);
}

/** And the process that remembers tells it. */
function restoredAndTold(): History {
  return restoredOnce().add({ restored: true, by: "t" }).wait(1000);
}

/** Redis falls back to a copy, and then one of two groups handles a message. */
function failedOver(since: number): History {
  const all = poll(poll(history(), "g"), "h").add({ fault: "failover", since }).wait(6000);
  return handledBy(all.offer("p", 1, 10).wait(20), "g", 1);
}

/** A process crashes while it waits for a message. */
function crashedTaking(group: object): History {
  const taking = history().offer("p", 1, 0).call("t", "take", group);
  return taking.add({ fault: "crash" }, "t").wait(60_000);
}

/** Two messages are due soon, and one later. */
function threeOffered(): History {
  return history().offer("p", 1, 10).offer("p", 2, 10).offer("p", 3, 500).wait(50);
}

function lossesOf(events: History): number {
  return events.judge(PLAIN).length;
}

/** A message with a key is delayed. */
function delayed(): History {
  return history().offer("p", 1, 100, { key: "k" });
}

/** A message with a key is due. */
function offered(): History {
  return history().offer("p", 1, 0, { key: "k" });
}

/** The first delivery is acknowledged. */
function ack(events: History, answer: unknown = true): History {
  return events.call("t", "ack", { delivery: 1 }, { answer });
}

/** Two messages with one partition key are due. */
function two(): History {
  const terms = { partitionKey: "a" };
  return history().offer("p", 1, 0, terms).offer("p", 2, 10, terms).wait(50);
}

/** The clock is set forward and, after a pause, back; then two handlers run at once. */
function steppedTwice(pause: number): History {
  return two().step(9000).wait(pause).step(-9000).take("t", 1, 1, { fence: 5 }).take("u", 2);
}

/** A handler fails, and its process dies so many milliseconds later. The next delivery is the third attempt. */
function diedInPause(after: number): History {
  const failed = two().take("t", 1, 1, { fence: 5 }).handlerEnded(1, "threw").wait(after);
  const all = failed.add({ fault: "crash", process: "t" }).wait(2000 - after);
  return all.take("u", 1, 3, { fence: 6, failures: 2 });
}

/** One handler begins while another one runs, whose process a fault has met. */
function overlapping(fault?: Record<string, unknown>): History {
  const all = two().take("t", 1, 1, { fence: 5 });
  if (fault !== undefined) all.add(fault, "t");
  return all.take("u", 2, 1, { fence: 6 }).handlerEnded(1, "returned").handlerEnded(2, "returned");
}

/** Two handlers of a sequence run at once, the second one in this process. */
function sharingSequence(process: string): History {
  return two()
    .take("t", 1, 1, { sequence: "a" })
    .take(process, 2, 1, { sequence: "a" })
    .handlerEnded(1, "returned")
    .handlerEnded(2, "returned");
}

const PUNCTUAL: Promises = { ...PLAIN, isPunctual: true, areOffersInTurn: true };

function found(all: History, what: string, promises = PUNCTUAL): string[] {
  return all.judge(promises).filter((violation) => violation.includes(what));
}

/** A consumer waits, and a message is due in 100 ms. */
function takerAhead(): History {
  return history().call("t", "take", {}).offer("p", 1, 100);
}

function pausedQueue(): History {
  return history().offer("p", 1, 0).call("p", "pause", {}, { answer: null });
}

/** One process extends its lease when another one has the message. */
function extended(answer: boolean): History {
  const failed = history().offer("p", 1, 0).take("t", 1).handlerEnded(1, "threw").wait(1000);
  return failed.take("u", 1, 2).call("t", "extend", { delivery: 1 }, { answer });
}

/** What is wrong with two offers that got these deadlines. */
function outOfTurn(...deadlines: readonly number[]): string[] {
  const all = history();
  for (const [i, deadline] of deadlines.entries()) {
    const answer = { id: `${deadline}-${i}`, deadline, outcome: "added" };
    all.call("p", "offer", { n: i, delay: 100 }, { answer });
  }
  return found(all, "turn");
}

/** What a process notes that has dropped a message. */
function drop(n: number, reason = "onlyIf") {
  return { dropped: `0-${n}`, reason };
}

/** Whether a message with this guard may come: with no key, a text, another one, a HASH, a LIST. */
function said(guard: object): boolean[] {
  return [null, "a", "b", { f: "a" }, ["a"]].map((state) => {
    const told = history().add({ guard: "status", state });
    told.offer("p", 1, 10, { onlyIf: { key: "status", ...guard } });
    return told.wait(20).get("t", 1).judge(PLAIN).length === 0;
  });
}

/** Two offers of p that arrived in the wrong order, while another process offered. */
function turned(isFlushed: boolean, other: string): string[] {
  const story = history()
    .call("p", "offer", { n: 1, delay: 10 })
    .call("p", "offer", { n: 2, delay: 10 })
    .call(other, "offer", { n: 3, delay: 500 });
  if (isFlushed) story.add({ fault: "script-flush" });
  const deadlines = [21, 20, 500];
  for (const [i, deadline] of deadlines.entries()) {
    const answer = { id: `${deadline}-${i + 1}`, deadline, outcome: "added" };
    story.add({ call: i + 1, answer });
  }
  return found(story, "out of turn");
}

/** An offer whose time comes by a step of the clock. */
function dueByStep() {
  return history().call("t", "take", {}).offer("p", 1, 90_000).step(90_000);
}

/** A delivery with this number, a moment after the first one failed for a second. */
function nextAttempt(attempt: number) {
  return offered()
    .take("t", 1, 1, key)
    .call("t", "nack", { delivery: 1, delay: 1000 }, YES)
    .wait(20)
    .take("u", 1, attempt, key);
}
