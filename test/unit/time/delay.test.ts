import { expect, test } from "vitest";
import { Delay } from "../../../src/time/delay.ts";

test("whole milliseconds from the call until the connection can be used are taken off", () => {
  expect(new Delay(1000, 50).restAt(300.9)).toBe(750);
  expect(new Delay(1000, 50).restAt(50.9)).toBe(1000);
});

test("a call that was made when the connection could be used has waited for nothing", () => {
  expect(new Delay(1000, 50).restAt(49)).toBe(1000);
  expect(new Delay(1000, 50).restAt(-Infinity)).toBe(1000);
});

test("it may be over: the order of what is overdue stays", () => {
  expect(new Delay(100, 0).restAt(500)).toBe(-400);
  expect(new Delay(0, 0).restAt(500)).toBe(-500);
});

test("of two calls that wait for one connection, the later one is never due earlier", () => {
  for (let later = 0; later < 3; later += 0.1) {
    const [one, other] = [new Delay(10, 0), new Delay(10, later)];
    expect(other.restAt(2.5)).toBeGreaterThanOrEqual(one.restAt(2.5));
  }
});
