import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Parts } from "../../../src/partitions/parts/parts.ts";
import { Gate } from "../../helpers/gate.ts";
import { Taking } from "../../../src/partitions/taking/taking.ts";

let told: (readonly [string, boolean])[];
let taking: Taking;

beforeEach(() => {
  vi.useFakeTimers();
  told = [];
  const members = [
    { name: "a", idle: 0, roles: { takes: ["group mail"] } },
    { name: "b", idle: 0, roles: { takes: ["list", "group other"] } },
    { name: "c", idle: 0, roles: { moves: true } },
  ];
  const attendTaking = (what: string, isTaking: boolean) => void told.push([what, isTaking]);
  taking = new Taking({ following: { members, attendTaking } } as unknown as Parts, "mail");
});

afterEach(() => {
  taking.close();
  vi.useRealTimers();
});

test("the members are those that take from the same group", () => {
  expect(taking.members).toEqual(["a"]);
});

test("taking is announced with the first wait, and withdrawn when nobody has waited for a while", async () => {
  await taking.during(() => Promise.resolve());
  await vi.advanceTimersByTimeAsync(4_000);
  await taking.during(() => Promise.resolve());
  await vi.advanceTimersByTimeAsync(4_999);
  expect(told).toEqual([["group mail", true]]);
  await vi.advanceTimersByTimeAsync(1);
  expect(told).toEqual([
    ["group mail", true],
    ["group mail", false],
  ]);
  await taking.during(() => Promise.resolve());
  expect(told.at(-1)).toEqual(["group mail", true]);
});

test("it is not withdrawn while somebody waits, however long", async () => {
  const gate = new Gate();
  const waiting = taking.during(() => gate.opened);
  await taking.during(() => Promise.resolve());
  await vi.advanceTimersByTimeAsync(60_000);
  expect(told).toEqual([["group mail", true]]);
  gate.open();
  await waiting;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(told.at(-1)).toEqual(["group mail", false]);
});
