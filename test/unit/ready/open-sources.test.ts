import { beforeEach, expect, test } from "vitest";
import { OpenSources } from "../../../src/ready/open-sources.ts";
import { KnownPause } from "./wire.ts";

let changes: number;
let sources: OpenSources;
let pauses: KnownPause[];

/** Sources by these names, and the first of them is asked first. */
function source(ready: string) {
  const pause = new KnownPause(false);
  pauses.push(pause);
  return { ready, receipts: `receipts of ${ready}`, pauses: pause };
}

const next = (count: number) => sources.next(count).map(({ ready }) => ready);

beforeEach(() => {
  changes = 0;
  pauses = [];
  sources = new OpenSources("rotating", () => changes++);
  sources.set(["a", "b", "c", "d"].map(source));
});

test("each source comes first in turn", () => {
  expect(next(1)).toEqual(["a", "b", "c", "d"]);
  expect(next(1)).toEqual(["b", "c", "d", "a"]);
  expect(next(6)).toEqual(["c", "d", "a", "b"]);
  expect(next(0)).toEqual(["a", "b", "c", "d"]);
  expect(next(1)).toEqual(["a", "b", "c", "d"]);
});

test("in a fixed order the first source stays first", () => {
  sources = new OpenSources("fixed", () => {});
  sources.set(["a", "b"].map(source));
  expect([next(1), next(1)]).toEqual([
    ["a", "b"],
    ["a", "b"],
  ]);
});

test("paused sources are left out, and a change is announced", () => {
  const before = sources.open;
  changes = 0;
  pauses[1]!.isPaused = true;
  expect([next(0), changes]).toEqual([["a", "c", "d"], 1]);
  expect(sources.open).not.toBe(before);
  pauses[1]!.isPaused = false;
  expect([next(0), changes]).toEqual([["a", "b", "c", "d"], 2]);
});

test("sources that have left are no longer listened to", () => {
  sources.set([source("e")]);
  expect(changes).toBe(2);
  expect(pauses.map(({ listenerCount }) => listenerCount)).toEqual([0, 0, 0, 0, 1]);
  expect(next(1)).toEqual(["e"]);
  sources.close();
  expect(pauses.at(-1)?.listenerCount).toBe(0);
});
