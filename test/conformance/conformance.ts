import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

/**
 * How this library meets one test of Redisson.
 *
 * - `same`: the tested behaviour holds here.
 * - `better`: differs on purpose; the note says what Redisson does.
 * - `other means`: there is no such call here; the case shows the equivalent.
 * - `narrower`: covers less; the case shows what holds.
 * - `absent`: has no such thing; the note says why.
 */
export type Verdict = "same" | "better" | "other means" | "narrower" | "absent";

export interface Conformance {
  /** A case that corresponds to the Redisson test with this name, written anew. */
  (
    redissonTest: string,
    verdict: Exclude<Verdict, "absent">,
    note: string,
    run: () => Promise<void>,
  ): void;
  /** A test of Redisson that has no meaning here. */
  (redissonTest: string, verdict: "absent", note: string): void;
}

/** The page for users: per suite of Redisson a heading, a table of the cases that differ, and a list of the others. */
const PAGE = new URL("../../docs/redisson/conformance.md", import.meta.url);

/**
 * The cases for one suite of Redisson's tests. Every one of the suite's `count` tests has to have a case, and the
 * users' page has to state each case's verdict, and the notes of those that differ.
 */
export function conformanceWith(suite: string, count: number): Conformance {
  const differing = new Map<string, string[]>();
  const same: string[] = [];
  test(`every test of ${suite} has a case, and the page states its verdict`, async () => {
    const names = [...differing.values()].flat();
    expect(new Set([...names, ...same]).size).toBe(count);
    expect(names.length + same.length).toBe(count);
    const page = await readFile(PAGE, "utf8");
    const section = page.split(/^## /m).find((text) => text.startsWith(`${suite}\n`));
    const table = String(section)
      .split("\n")
      .filter((line) => line.startsWith("|"))
      .map((line) => line.replace(/ +/g, " ").replace(/^\| | \|$/g, ""));
    const rows = Array.from(differing, ([what, tests]) => `${tests.join(", ")} | ${what}`);
    expect(table.slice(2)).toEqual(rows);
    const listed = /^The same: (.*?)\.$/ms.exec(String(section))?.[1];
    expect(listed?.split(/,\s+/)).toEqual(same);
  });
  return (name: string, verdict: Verdict, note: string, run?: () => Promise<void>) => {
    const what = `${verdict} | ${note}`;
    const tests = verdict === "same" ? same : (differing.get(what) ?? []);
    tests.push(`\`${name}\``);
    if (verdict !== "same") differing.set(what, tests);
    if (run !== undefined) test(`${name} (${verdict})`, run);
  };
}
