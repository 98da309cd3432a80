import { expect, test } from "vitest";
import { judgeOneInHand, judgeOverlap, judgeRuns } from "../../simulation/ledger/runs.ts";
import { judgeTicks, type Deed } from "../../simulation/ledger/ticks.ts";
import type { Noted } from "../../simulation/sim.ts";

const EVERY = 1000;

/** A history of one schedule that is made up. The server's clock shows the milliseconds that have elapsed. */
class History {
  readonly #noted: Noted[] = [];
  #at = 0;

  until(at: number): this {
    this.#at = at;
    return this;
  }

  add(event: Record<string, unknown>): this {
    this.#noted.push({ at: this.#at, step: this.#noted.length, process: undefined, event });
    return this;
  }

  deed(deed: Deed, details: object = {}): this {
    const about = { deed, name: "job", every: EVERY, now: this.#at };
    return this.add({ ...about, ...details, phase: "begins" }).add({
      ...about,
      ...details,
      phase: "done",
    });
  }

  /** Each tick reaches a handler at its instant. */
  run(...ticks: number[]): this {
    for (const tick of ticks) this.until(tick).add({ ran: true, name: "job", tick, attempt: 1 });
    return this;
  }

  watermark(until: number, count: number): this {
    return this.add({ watermark: "job", until, count });
  }

  begin(tick: number, attempt = 1): this {
    return this.add({ ran: true, name: "job", tick, attempt, id: `${tick}`, now: this.#at });
  }

  end(tick: number, attempt = 1, isFailed = false): this {
    return this.add({ ended: true, name: "job", tick, attempt, id: `${tick}`, isFailed });
  }

  get runs(): string[] {
    return judgeRuns(this.#noted);
  }

  get overlaps(): string[] {
    return judgeOverlap(this.#noted, "job");
  }

  get besides(): string[] {
    return judgeOneInHand(this.#noted, "job");
  }

  get violations(): string[] {
    return judgeTicks(this.#noted, ["job"]);
  }
}

/** Declared at 500 ms. */
const declared = () => new History().until(500).deed("declare");

test("each tick once, between declaration and removal: nothing is wrong", () => {
  const history = declared().watermark(3000, 3).run(1000, 2000).watermark(4000, 4);
  expect(history.run(3000, 4000, 5000).until(5500).deed("remove").violations).toEqual([]);
});

test("a tick that never comes is lost, unless it is due just when the schedule ends", () => {
  const history = declared().run(1000, 3000, 4000).until(5500).deed("remove");
  expect(history.violations).toEqual(["lost: tick 2000 of job"]);
  const late = declared().run(1000, 2000).until(4500).deed("remove");
  expect(late.violations).toEqual([]);
});

test("a tick that comes twice; a second attempt is none", () => {
  const history = declared().run(1000, 2000, 2000);
  expect(history.violations).toEqual(["twice: tick 2000 of job"]);
  const retried = declared().run(1000).add({ ran: true, name: "job", tick: 1000, attempt: 2 });
  expect(retried.violations).toEqual([]);
});

test("a tick of a schedule that is paused or removed, or of one that was declared otherwise", () => {
  const paused = declared().run(1000).until(1500).deed("pause").run(2000);
  expect(paused.violations).toEqual(["unwanted: tick 2000 of job at 2000 ms"]);
  const removed = declared().run(1000).until(1500).deed("remove").run(2000);
  expect(removed.violations).toEqual(["unwanted: tick 2000 of job at 2000 ms"]);
  const changed = declared().run(1000).until(1500).deed("declare", { every: 1700 }).run(2000);
  expect(changed.violations).toEqual(["unwanted: tick 2000 of job at 2000 ms"]);
});

test("a watermark that falls, unless somebody changes the schedule meanwhile", () => {
  const fallen = declared().run(1000).watermark(5000, 5).until(1100).watermark(4000, 5);
  expect(fallen.violations).toEqual(["the watermark of job fell at 1100 ms"]);
  const fewer = declared().run(1000).watermark(5000, 5).until(1100).watermark(5000, 4);
  expect(fewer.violations).toEqual(["the watermark of job fell at 1100 ms"]);
  const changed = declared().watermark(5000, 5).until(600).deed("pause").until(700);
  expect(changed.watermark(500, 0).violations).toEqual([]);
});

test("a failover excuses what it has undone", () => {
  const history = declared().run(1000).until(1200).add({ fault: "failover", since: 900 });
  expect(history.run(1000, 3000).until(5500).deed("remove").violations).toEqual([]);
});

test("a run that begins beside another one, unless the number of partitions has changed", () => {
  expect(new History().begin(1000).end(1000).begin(2000).end(2000).overlaps).toEqual([]);
  const beside = new History().begin(1000).begin(2000).end(1000);
  expect(beside.overlaps).toEqual(["overlap: tick 2000 of job beside that of 0 ms"]);
  expect(beside.add({ changes: 2 }).overlaps).toEqual([]);
  // Its process has died.
  expect(new History().begin(1000).begin(2000).end(2000).overlaps).toEqual([]);
});

test("a tick that begins beside a retry or a triggered run, unless it may have been moved before", () => {
  const retried = (at: number) => new History().until(at).begin(1000, 2).until(2100).begin(2000);
  expect(retried(1500).end(1000, 2).overlaps).toEqual([
    "overlap: tick 2000 of job beside that of 1500 ms",
  ]);
  expect(retried(2050).end(1000, 2).overlaps).toEqual([]);
  const triggered = new History()
    .until(1500)
    .add({ triggered: true, name: "job", tick: 1500, now: 1500 });
  const beside = triggered.begin(2000).add({ ended: true, name: "job", tick: 1500 });
  expect(beside.overlaps).toHaveLength(1);
  // A retry comes always.
  expect(new History().begin(1000).begin(500, 2).end(500, 2).end(1000).overlaps).toEqual([]);
});

test("a run that failed is retried, and a triggered one comes, unless the queue is cleared", () => {
  const failed = new History().begin(1000).end(1000, 1, true);
  expect(failed.runs).toEqual(["lost: retry of run 1000"]);
  expect(failed.begin(1000, 2).end(1000, 2).runs).toEqual([]);
  const triggered = new History().add({ triggers: "job", id: "7" });
  expect(triggered.runs).toEqual(["lost: run 7 triggered at 0 ms"]);
  const came = { triggered: true, name: "job", tick: 0, attempt: 1, id: "7" };
  expect(new History().add(came).add({ triggers: "job", id: "7" }).runs).toEqual([]);
  expect(triggered.add({ clears: "begins" }).runs).toEqual([]);
});

test("what was placed when somebody clears the queue is not lost; what comes behind it is", () => {
  const cleared = declared().run(1000).add({ clears: "begins", now: 1500 });
  const history = cleared.add({ clears: "done", now: 1600 }).until(40_000).deed("remove");
  expect(history.violations[0]).toBe("lost: tick 34000 of job");
});

test("with overlap wait no run begins beside another one, be it triggered or a retry", () => {
  expect(new History().begin(1000).end(1000).begin(2000).end(2000).besides).toEqual([]);
  const beside = new History().begin(1000).begin(500, 2).end(500, 2).end(1000);
  expect(beside.besides).toEqual(["overlap: tick 500 of job beside that of 0 ms"]);
  expect(beside.add({ fault: "stall" }).besides).toEqual([]);
  // The process of the first one has died.
  expect(new History().begin(1000).begin(2000).end(2000).besides).toEqual([]);
});
