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
