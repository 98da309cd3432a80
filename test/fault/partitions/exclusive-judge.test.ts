import { expect, test } from "vitest";
import { judge, type Disturbances } from "./exclusive-judge.ts";
import type { StormNote } from "./storm-note.ts";

// The judge of the storm finds each fault that is in a ledger, and none in a sound one.

const RULES = { strict: true, retry: [300], maxAttempts: 3 };
const CALM: Disturbances = { stops: [], kills: [], redrives: [] };
const NONE = { overlaps: 0, disordered: 0, fences: 0, pauses: 0, attempts: 0, unaborted: 0 };

interface Handling {
  readonly from: number;
  /** Undefined if the handler never noted its end. */
  readonly to?: number;
  readonly number?: number;
  readonly by?: string;
  readonly attempt?: number;
  readonly fence?: number;
  readonly failed?: boolean;
  readonly aborted?: number;
}

/** The ledger of handlers of one key. */
function ledgerOf(...handlings: readonly Handling[]): StormNote[] {
  return handlings.flatMap((one): StormNote[] => {
    const { from, to, number = 0, by = "a", attempt = 1, fence = 1, failed = false } = one;
    const about = { by, key: "k", number, attempt, fence, offered: 0, entered: from, from: 0 };
    const notes: StormNote[] = [{ ...about, what: "start", aborted: 0, at: from }];
    if (to === undefined) return notes;
    const { aborted = 0 } = one;
    notes.push({ ...about, what: failed ? "fail" : "done", aborted, at: to });
    if (failed) notes.push({ ...about, what: "settled", aborted, at: to + 5 });
    return notes;
  });
}

/** How many faults of each kind the judge finds. */
function found(notes: readonly StormNote[], disturbances = CALM, rules = RULES) {
  return Object.fromEntries(
    Object.entries(judge(notes, disturbances, rules)).map(([kind, all]) => [kind, all.length]),
  );
}

test("a sound ledger has no fault", () => {
  const notes = ledgerOf(
    { from: 100, to: 110, failed: true },
    { from: 450, to: 460, attempt: 2 },
    { from: 460, to: 470, number: 1, fence: 2, by: "b" },
  );
  expect(found(notes)).toEqual(NONE);
});

test("two handlers of a key at once", () => {
  const notes = ledgerOf({ from: 100, to: 200 }, { from: 150, to: 160, number: 1, by: "b" });
  expect(found(notes)).toEqual({ ...NONE, overlaps: 1 });
});

test("a handler of a process that stood still is excused, from a second after the standstill on", () => {
  const stops = [{ by: "a", from: 110, to: 4110 }];
  const stale = { from: 100, to: 4200, aborted: 4110 };
  const next = { attempt: 2, fence: 2, by: "b" };
  const late = ledgerOf(stale, { from: 2700, to: 2710, ...next });
  expect(found(late, { ...CALM, stops })).toEqual(NONE);
  const early = ledgerOf(stale, { from: 1000, to: 1010, ...next });
  expect(found(early, { ...CALM, stops })).toEqual({ ...NONE, overlaps: 1 });
  // One that begins after the process woke is not excused.
  const woken = ledgerOf({ from: 4100, to: 4200, ...next }, { from: 4150, to: 4160, attempt: 3 });
  const faults = found(woken, { ...CALM, stops: [{ by: "a", from: 110, to: 4120 }] });
  expect(faults).toMatchObject({ overlaps: 1, fences: 1 });
  // Nor is a short standstill an excuse.
  const short = ledgerOf({ from: 100, to: 900 }, { from: 800, to: 810, number: 1, by: "b" });
  const blink = { ...CALM, stops: [{ by: "a", from: 110, to: 610 }] };
  expect(found(short, blink)).toEqual({ ...NONE, overlaps: 1 });
});

test("a handler that was replaced during a standstill and is not told", () => {
  const stops = [{ by: "a", from: 110, to: 4110 }];
  const notes = ledgerOf(
    { from: 100, to: 4200 },
    { from: 2700, to: 2710, attempt: 2, fence: 2, by: "b" },
  );
  expect(found(notes, { ...CALM, stops })).toEqual({ ...NONE, unaborted: 1 });
});

test("a killed handler ends with its process", () => {
  const kills = [{ by: "a", at: 150 }];
  const next = { attempt: 2, fence: 2, by: "b" };
  expect(
    found(ledgerOf({ from: 100 }, { from: 200, to: 210, ...next }), { ...CALM, kills }),
  ).toEqual(NONE);
  expect(
    found(ledgerOf({ from: 100 }, { from: 140, to: 149, ...next }), { ...CALM, kills }),
  ).toEqual({ ...NONE, overlaps: 1 });
});

test("the order of a key, strict and not", () => {
  const swapped = ledgerOf({ from: 100, to: 110, number: 1 }, { from: 120, to: 130 });
  expect(found(swapped)).toEqual({ ...NONE, disordered: 1 });
  expect(found(swapped, CALM, { ...RULES, strict: false })).toEqual({ ...NONE, disordered: 1 });
  const overtaken = ledgerOf(
    { from: 100, to: 110, failed: true },
    { from: 120, to: 130, number: 1 },
    { from: 450, to: 460, attempt: 2 },
  );
  expect(found(overtaken)).toEqual({ ...NONE, disordered: 1 });
  expect(found(overtaken, CALM, { ...RULES, strict: false })).toEqual(NONE);
});

test("a redriven message may come late, one that was not dead may not", () => {
  const died = [
    { from: 100, to: 110, failed: true },
    { from: 500, to: 510, failed: true, attempt: 2 },
    { from: 900, to: 910, failed: true, attempt: 3 },
    { from: 920, to: 930, number: 1 },
  ];
  const redriven = { ...CALM, redrives: [1000] };
  expect(found(ledgerOf(...died, { from: 1010, to: 1020 }), redriven)).toEqual(NONE);
  expect(found(ledgerOf(...died, { from: 1010, to: 1020 }))).toMatchObject({ disordered: 1 });
  const alive = ledgerOf(
    { from: 100, to: 110, failed: true },
    { from: 120, to: 130, number: 1 },
    { from: 1010, to: 1020, attempt: 2 },
  );
  expect(found(alive, redriven)).toEqual({ ...NONE, disordered: 1 });
});

test("a fence that falls", () => {
  const notes = ledgerOf(
    { from: 100, to: 110, fence: 5 },
    { from: 120, to: 130, number: 1, fence: 4 },
  );
  expect(found(notes)).toEqual({ ...NONE, fences: 1 });
});

test("a pause that is cut short, also by a process that died after the failure was settled", () => {
  const notes = ledgerOf(
    { from: 100, to: 110, failed: true },
    { from: 400, to: 410, attempt: 2, by: "b", fence: 2 },
  );
  expect(found(notes)).toEqual({ ...NONE, pauses: 1 });
  const killed = { ...CALM, kills: [{ by: "a", at: 200 }] };
  expect(found(notes, killed)).toEqual({ ...NONE, pauses: 1 });
  // It died before: the failure may not be in Redis.
  const unsettled = notes.filter(({ what }) => what !== "settled");
  expect(found(unsettled, { ...CALM, kills: [{ by: "a", at: 112 }] })).toEqual(NONE);
});

test("attempts", () => {
  const first = { from: 100, to: 110, failed: true };
  const second = { from: 500, to: 510, by: "b", fence: 2 };
  const again = (attempt: number) => ledgerOf(first, { ...second, attempt });
  expect(found(again(1))).toEqual({ ...NONE, attempts: 1 });
  expect(found(again(3))).toEqual({ ...NONE, attempts: 1 });
  // A process that was killed in between costs one.
  const killed = { ...CALM, kills: [{ by: "c", at: 300 }] };
  expect(found(again(3), killed)).toEqual(NONE);
  expect(found(ledgerOf({ from: 100, to: 110, attempt: 2 }))).toEqual({ ...NONE, attempts: 1 });
  // A message that was handled comes no more.
  const twice = ledgerOf({ from: 100, to: 110 }, { from: 500, to: 510, attempt: 2 });
  expect(found(twice)).toEqual({ ...NONE, attempts: 1 });
});
