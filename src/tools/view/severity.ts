import { formatCount } from "./words.js";

/**
 * How bad something is, for every face. An error stops messages or loses them, now or at the next restart. A warning is for
 * a person to look at, and the others move on. A notice only informs.
 */
export type Severity = "error" | "warning" | "notice";

const SCALE: readonly Severity[] = ["error", "warning", "notice"];

/** The worst of some severities; undefined if there is none. */
export function worstOf(severities: readonly Severity[]): Severity | undefined {
  return SCALE.find((one) => severities.includes(one));
}

/** The same, the worst first. */
export function worstFirst<T extends { readonly level: Severity }>(all: readonly T[]): T[] {
  return all.toSorted((a, b) => SCALE.indexOf(a.level) - SCALE.indexOf(b.level));
}

/** How many of each severity: `1 error, 2 warnings`; empty if there are none. */
export function countBySeverity(all: readonly { readonly level: Severity }[]): string {
  return SCALE.map((level) => [all.filter((one) => one.level === level).length, level] as const)
    .filter(([count]) => count > 0)
    .map(([count, level]) => formatCount(count, level))
    .join(", ");
}
