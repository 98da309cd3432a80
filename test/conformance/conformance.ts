import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

/**
 * How we stand to what one test of Redisson asks.
 *
 * - `same`: what it asks holds here.
 * - `better`: on purpose otherwise; the note says what Redisson does.
 * - `other means`: there is no such call here, and the case shows what does the same.
 * - `narrower`: we do less; the case shows what holds.
 * - `absent`: we have no such thing, and the note says why.
 */
export type Verdict = "same" | "better" | "other means" | "narrower" | "absent";

export interface Conformance {
  /** A case that stands for the test of Redisson with this name, written anew. */
  (
    redissonTest: string,
    verdict: Exclude<Verdict, "absent">,
    note: string,
    run: () => Promise<void>,
  ): void;
  /** A test of Redisson that has no meaning here. */
  (redissonTest: string, verdict: "absent", note: string): void;
}

/** Where users read the verdicts: one heading per suite of Redisson, and a table under it. */
const PAGE = new URL("../../docs/redisson/conformance.md", import.meta.url);

/**
 * The cases for one suite of Redisson's tests. All of the suite's `count` tests have to be accounted
 * for, and the page for users has to say of each what its case says.
 */
export function conformanceWith(suite: string, count: number): Conformance {
  const rows: string[] = [];
  test(`${suite}: every test of it is accounted for, and the page says so`, async () => {
    expect(new Set(rows.map((row) => row.split(" | ")[0])).size).toBe(count);
    expect(rows.length).toBe(count);
    const page = await readFile(PAGE, "utf8");
    const section = page.split(/^## /m).find((text) => text.startsWith(`${suite}\n`));
    const table = String(section)
      .split("\n")
      .filter((line) => line.startsWith("|"))
      .map((line) => line.replace(/ +/g, " ").replace(/^\| | \|$/g, ""));
    expect(table.slice(2)).toEqual(rows);
  });
  return (name: string, verdict: Verdict, note: string, run?: () => Promise<void>) => {
    rows.push(`\`${name}\` | ${verdict} | ${note}`);
    if (run !== undefined) test(`${name} (${verdict})`, run);
  };
}
