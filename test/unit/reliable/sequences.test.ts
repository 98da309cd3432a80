import { setImmediate as turn } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { Sequences } from "../../../src/reliable/consuming/sequences.ts";

let sequences: Sequences;
let running: string[];
let ended: string[];
/** Ends the work of this name, with or without an error. */
let ends: Map<string, (error?: Error) => void>;

beforeEach(() => {
  sequences = new Sequences();
  running = [];
  ended = [];
  ends = new Map();
});

/** Calls a work that runs until it is ended. */
function run(key: string | undefined, name: string): Promise<string> {
  return sequences.run(key, async () => {
    running.push(name);
    const error = await new Promise<Error | undefined>((resolve) => {
      ends.set(name, resolve);
    });
    running.splice(running.indexOf(name), 1);
    ended.push(name);
    if (error !== undefined) throw error;
    return name;
  });
}

async function end(name: string, error?: Error): Promise<void> {
  ends.get(name)?.(error);
  await turn();
}

describe("works with one key", () => {
  test("run one after the other, in the order of the calls", async () => {
    const results = ["1", "2", "3"].map((name) => run("a", name));
    await turn();
    for (const name of ["1", "2", "3"]) {
      expect(running).toEqual([name]);
      await end(name);
    }
    expect(await Promise.all(results)).toEqual(["1", "2", "3"]);
  });

  test("go on after a failure, and only its own call rejects", async () => {
    const failing = run("a", "1");
    const next = run("a", "2");
    await turn();
    const rejected = expect(failing).rejects.toThrow("no answer");
    await end("1", new Error("no answer"));
    await rejected;
    expect(running).toEqual(["2"]);
    await end("2");
    expect(await next).toBe("2");
  });

  test("go on after one that throws at once", async () => {
    const failing = sequences.run("a", () => {
      throw new Error("no promise");
    });
    const next = run("a", "2");
    await expect(failing).rejects.toThrow("no promise");
    await turn();
    expect(running).toEqual(["2"]);
    await end("2");
    await next;
    expect(sequences.size).toBe(0);
  });

  test("that are called by a work of their key wait for its end", async () => {
    let inner: Promise<string> | undefined;
    const outer = sequences.run("a", async () => {
      inner = run("a", "inner");
      await turn();
      expect(running).toEqual([]);
    });
    await outer;
    await turn();
    expect(running).toEqual(["inner"]);
    await end("inner");
    await inner;
  });

  test("that are called while the last one ends are in order, too", async () => {
    const first = run("a", "1");
    await turn();
    const later = first.then(() => run("a", "2"));
    await end("1");
    const last = run("a", "3");
    await turn();
    expect(running).toEqual(["2"]);
    await end("2");
    await later;
    expect(running).toEqual(["3"]);
    await end("3");
    await last;
  });
});

describe("all others run at once:", () => {
  test.each<[string, (string | undefined)[]]>([
    ["works with other keys", ["a", "b", "", "__proto__"]],
    ["works without a key", [undefined, undefined, "a", "undefined"]],
  ])("%s", async (_, keys) => {
    const results = keys.map((key, i) => run(key, String(i)));
    await turn();
    expect(running).toHaveLength(keys.length);
    for (const i of keys.keys()) await end(String(i));
    await Promise.all(results);
    expect(sequences.size).toBe(0);
  });

  test("a work without a key that throws at once rejects", async () => {
    const failing = sequences.run(undefined, () => {
      throw new Error("no promise");
    });
    await expect(failing).rejects.toThrow("no promise");
  });
});

test("a key is forgotten when it has no work left", async () => {
  const results = [run("a", "1"), run("a", "2"), run("b", "3")];
  await turn();
  expect(sequences.size).toBe(2);
  await end("3");
  expect(sequences.size).toBe(1);
  await end("1");
  expect(sequences.size).toBe(1);
  await end("2");
  await Promise.all(results);
  expect(sequences.size).toBe(0);
});

test("10,000 works of one key, and 10,000 keys, take no longer than they should", async () => {
  const order: number[] = [];
  const startedAt = performance.now();
  const count = 10_000;
  await Promise.all(
    Array.from({ length: count }, (_, i) =>
      Promise.all([
        sequences.run("a", async () => order.push(i)),
        sequences.run(`key ${i}`, async () => await Promise.resolve()),
      ]),
    ),
  );
  // About 30 ms on a quiet machine. If each work checked all others, it would take minutes.
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  expect(order).toEqual([...Array(count).keys()]);
  await turn();
  expect(sequences.size).toBe(0);
});
