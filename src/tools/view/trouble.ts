import type { Cause } from "../../inside.ts";
import type { Severity } from "./severity.ts";

/** What is wrong with Redis itself. It is one cause for all queues, so each face says it once. */
export interface Trouble {
  readonly level: Severity;
  /**
   * - `silent`: it does not answer, and the numbers are those of before
   * - `refusing`: it answers, and refuses every write
   * - `unlisted`: it answers, and the queues could not be listed
   */
  readonly kind: "silent" | "refusing" | "unlisted";
  /** When it last answered (epoch ms on its clock), if it is silent and has answered before. */
  readonly since: number | undefined;
  /** Why, and the way out, in sentences. Empty if that is not known. */
  readonly text: string;
}

/** That Redis does not answer. */
export function silence(since: number | undefined, cause: Cause | undefined): Trouble {
  const why = cause === undefined || cause.kind === "silent" ? "" : `It ${cause.what}. `;
  const text = cause === undefined ? "" : `${why}${sentence(cause.repair)}`;
  return { level: "error", kind: "silent", since, text };
}

/** That Redis refuses every write. */
export function refusal(cause: Cause): Trouble {
  const text = `${refusalInWords(cause)}. ${sentence(cause.repair)}`;
  return { level: "error", kind: "refusing", since: undefined, text };
}

/** That the queues could not be listed. */
export function unlisted(text: string): Trouble {
  return { level: "error", kind: "unlisted", since: undefined, text };
}

/** What it means that Redis refuses every write, as a part of a sentence. */
export function refusalInWords({ kind, what }: Cause): string {
  // With full memory Redis still runs scripts that free some first: they move a message.
  const consequence =
    kind === "memory"
      ? "nothing is offered, and what is due still becomes ready"
      : "nothing is offered or moved";
  return `Redis ${what}: ${consequence}`;
}

/** A trouble in one line. `at` writes an instant (epoch ms). */
export function troubleInWords(
  { kind, since, text }: Trouble,
  at: (instant: number) => string,
): string {
  if (kind !== "silent") return text;
  const head =
    since === undefined ? "Redis does not answer." : `Redis has not answered since ${at(since)}.`;
  return text === "" ? head : `${head} ${text}`;
}

/** The same as a sentence. */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
