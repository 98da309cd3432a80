import { expect } from "vitest";

/**
 * Plays cases at once in one test, each to its end, and tells of all that failed: for cases that mostly wait, and share
 * nothing.
 */
export async function atOnce<Case>(
  cases: readonly Case[],
  play: (one: Case) => Promise<void>,
): Promise<void> {
  const played = await Promise.allSettled(cases.map(play));
  const failures = played.flatMap((outcome, i) =>
    outcome.status === "rejected" ? [`${JSON.stringify(cases[i])}: ${String(outcome.reason)}`] : [],
  );
  expect(failures).toEqual([]);
}
