import { escapeControl } from "../../inspect/escape-control.ts";
import { shellWord } from "../../inspect/shell-word.ts";

/** The options that say which Redis a command is for, and how it opens queues there. */
export interface Connection {
  /** The values of `--redis`; empty where `REDIS_URL` or the default applies. */
  readonly urls: readonly string[];
  readonly isCluster: boolean;
  readonly interop: "none" | "redisson";
}

/**
 * A `delayline` command to paste into a shell, with the connection options of this run. `<the same>` replaces a URL
 * that may hold a password. Returns undefined if a word cannot be pasted: it begins like an option, or holds characters
 * that are only shown escaped.
 */
export function commandLine(
  words: readonly string[],
  { urls, isCluster, interop }: Connection,
): string | undefined {
  const all = [
    ...words,
    ...urls.flatMap((url) => ["--redis", mayHoldSecret(url) ? "<the same>" : url]),
    ...(isCluster ? ["--cluster"] : []),
    ...(interop === "none" ? [] : ["--interop", interop]),
  ];
  const isPasteable =
    all.every((word) => escapeControl(word) === word) && !words.some((word) => /^-|^$/.test(word));
  return isPasteable ? ["npx", "delayline", ...all.map(shellWord)].join(" ") : undefined;
}

function mayHoldSecret(text: string): boolean {
  const { username, password, searchParams } = new URL(text);
  return username + password !== "" || [...searchParams.keys()].some((name) => name !== "db");
}
