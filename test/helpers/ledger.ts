import { expect } from "vitest";

/** What was sent but has not been received. */
export function missing<T>(sent: Iterable<T>, received: Iterable<T>): T[] {
  const got = new Set(received);
  return [...sent].filter((message) => !got.has(message));
}

/** What was received more than once. */
export function repeated<T>(received: readonly T[]): T[] {
  const seen = new Set<T>();
  return received.filter((message) => seen.size === seen.add(message).size);
}

/** Nothing lost, nothing twice, nothing invented; in any order. */
export function expectEachOnce<T>(sent: readonly T[], received: readonly T[]): void {
  expect({
    lost: missing(sent, received),
    twice: repeated(received),
    invented: missing(received, sent),
  }).toEqual({ lost: [], twice: [], invented: [] });
}
