import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { RedisError } from "../../../src/errors.ts";
import type { Work } from "../../../src/redis/troubles.ts";
import { Task } from "../../../src/run/task.ts";
import { Pause } from "../../../src/time/pause.ts";

/** The actions that are under way or over: the test ends each by hand. */
let actions: { readonly end: (delay: number) => void; readonly fail: (error: unknown) => void }[];
let outcomes: string[];
let task: Task;

const work: Work = {
  failed: ({ message }) => outcomes.push(message),
  unreachable: () => {},
  succeeded: () => outcomes.push("succeeded"),
  stopped: () => outcomes.push("stopped"),
  ended: () => outcomes.push("ended"),
};

const newTask = (pause?: Pause) =>
  new Task(
    () => new Promise((resolve, reject) => actions.push({ end: resolve, fail: reject })),
    "cannot act",
    work,
    pause,
  );

beforeEach(() => {
  vi.useFakeTimers();
  actions = [];
  outcomes = [];
  task = newTask();
});

afterEach(async () => {
  void task.stop();
  actions.at(-1)?.end(0);
  await pass();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

/** Ends the action that is under way. */
async function end(delay: number): Promise<void> {
  actions.at(-1)?.end(delay);
  await pass();
}

async function fail(error: unknown = new Error("lost")): Promise<void> {
  actions.at(-1)?.fail(error);
  await pass();
}

/** Begins to stop. Returns a function that tells whether it has resolved. */
function stop(by: "stop" | "close" = "stop"): () => boolean {
  let hasStopped = false;
  void task[by]().then(() => (hasStopped = true));
  return () => hasStopped;
}

describe("at intervals", () => {
  test("starts after the delay, and goes on after as long as each action returns", async () => {
    task.start(50);
    await pass(49);
    expect(actions).toHaveLength(0);
    await pass(1);
    expect(actions).toHaveLength(1);
    await pass(60_000);
    expect(actions).toHaveLength(1);
    await end(200);
    await pass(199);
    expect(actions).toHaveLength(1);
    await pass(1);
    expect(actions).toHaveLength(2);
    await end(0);
    await pass(1);
    expect(actions).toHaveLength(3);
    expect(outcomes).toEqual(["succeeded", "succeeded"]);
  });

  test("a second start changes nothing", async () => {
    task.start(50);
    await pass(40);
    task.start(50);
    await pass(10);
    expect(actions).toHaveLength(1);
    await end(Infinity);
    task.start();
    await pass(60_000);
    expect(actions).toHaveLength(1);
  });
});

describe("woken", () => {
  test("acts in the same turn, started or not, instead of at the next interval", async () => {
    task.wake();
    expect(actions).toHaveLength(1);
    await end(100);
    await pass(40);
    task.wake();
    expect(actions).toHaveLength(2);
    await end(100);
    await pass(99);
    expect(actions).toHaveLength(2);
    await pass(1);
    expect(actions).toHaveLength(3);
  });

  test("often during an action, acts once more, at once", async () => {
    task.wake();
    for (let i = 0; i < 5; i++) task.wake();
    await end(60_000);
    expect(actions).toHaveLength(2);
    await end(60_000);
    expect(actions).toHaveLength(2);
  });

  test("an action that returns Infinity waits to be woken", async () => {
    task.wake();
    await end(Infinity);
    await pass(86_400_000);
    expect(actions).toHaveLength(1);
    task.wake();
    expect(actions).toHaveLength(2);
  });
});

describe("a failure", () => {
  test("is reported, and tried again after a pause that grows until a success", async () => {
    task.start();
    await pass(1);
    for (const pause of [100, 200, 400, 800, 1600, 3200, 5000, 5000]) {
      await fail();
      const { length } = actions;
      await pass(pause - 1);
      expect(actions).toHaveLength(length);
      await pass(1);
      expect(actions).toHaveLength(length + 1);
    }
    expect(outcomes).toEqual(Array(8).fill("cannot act: lost"));
    await end(0);
    await pass(1);
    await fail();
    const { length } = actions;
    await pass(100);
    expect(actions).toHaveLength(length + 1);
  });

  test("of Redis is reported in its own words", async () => {
    task.wake();
    await fail(new RedisError("cannot ask", new Error("lost")));
    expect(outcomes).toEqual(["cannot ask: lost"]);
  });

  test("waking does not cut the pause short", async () => {
    task.wake();
    task.wake();
    await fail();
    task.wake();
    await pass(99);
    expect(actions).toHaveLength(1);
    await pass(1);
    expect(actions).toHaveLength(2);
    // This action serves the requests of before.
    await end(Infinity);
    expect(actions).toHaveLength(2);
  });

  test("without another attempt, is left to whoever wakes it", async () => {
    task = newTask(new Pause(Infinity, Infinity));
    task.wake();
    await fail();
    expect(outcomes).toEqual(["cannot act: lost", "stopped"]);
    await pass(86_400_000);
    expect(actions).toHaveLength(1);
    task.wake();
    expect(actions).toHaveLength(2);
    task.wake();
    await fail();
    expect(actions).toHaveLength(3);
  });

  test("thrown at once is one like any other", async () => {
    task = new Task(
      () => {
        throw new Error("broken");
      },
      "cannot act",
      work,
    );
    task.wake();
    await pass();
    expect(outcomes).toEqual(["cannot act: broken"]);
  });
});

describe("stopping", () => {
  test("before the start, no action ever begins", async () => {
    const hasStopped = stop();
    await pass();
    expect(hasStopped()).toBe(true);
    task.start();
    task.wake();
    await pass(60_000);
    expect(actions).toHaveLength(0);
  });

  test("between two actions, or in the pause after a failure, resolves at once", async () => {
    task.wake();
    await end(100);
    const hasStopped = stop();
    await pass();
    expect([hasStopped(), vi.getTimerCount()]).toEqual([true, 0]);

    task = newTask();
    task.wake();
    await fail();
    const hasStoppedToo = stop();
    await pass();
    expect([hasStoppedToo(), vi.getTimerCount()]).toEqual([true, 0]);
    await pass(60_000);
    expect(actions).toHaveLength(2);
  });

  test("during an action, resolves after it; nothing follows, although it was woken", async () => {
    task.wake();
    task.wake();
    const all = [stop(), stop()];
    expect(task.isStopped).toBe(true);
    await pass(60_000);
    expect(all.map((hasStopped) => hasStopped())).toEqual([false, false]);
    await end(0);
    expect(all.map((hasStopped) => hasStopped())).toEqual([true, true]);
    await pass(60_000);
    expect(actions).toHaveLength(1);
  });

  test("a failure after it is not reported", async () => {
    task.wake();
    const hasStopped = stop();
    await fail();
    expect([hasStopped(), outcomes]).toEqual([true, []]);
  });

  test("an action may stop its own task", async () => {
    let count = 0;
    task = new Task(
      async () => {
        count++;
        void task.stop();
        return 0;
      },
      "cannot act",
      work,
    );
    task.start();
    await pass(60_000);
    expect(count).toBe(1);
  });

  test("only closing ends the work", async () => {
    stop();
    await pass();
    expect(outcomes).toEqual([]);
    const hasClosed = stop("close");
    await pass();
    expect([hasClosed(), outcomes]).toEqual([true, ["ended"]]);
  });
});
