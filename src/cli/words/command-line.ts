import { escapeControl } from "../../inspect/escape-control.ts";

/** The options of a command line that say which Redis it is for, and how queues are opened there. */
export interface Connection {
  /** What `--redis` was given; empty where `REDIS_URL` or the default counts. */
  readonly urls: readonly string[];
  readonly isCluster: boolean;
  readonly interop: "none" | "redisson";
}

/**
 * A `delayline` command to be pasted into a shell, for the same Redis as this one. A URL that may hold a password is not
 * repeated: `<the same>` stands for it. Returns undefined if a word cannot be pasted: it begins like an option, or has
 * characters that only an escape can show.
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
  return isPasteable ? ["delayline", ...all.map(shellWord)].join(" ") : undefined;
}

/** One word of a POSIX shell: as it is where every shell takes it so, and else in single quotes. */
function shellWord(word: string): string {
  return /^[\w.:@/-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

function mayHoldSecret(text: string): boolean {
  const { username, password, searchParams } = new URL(text);
  return username + password !== "" || [...searchParams.keys()].some((name) => name !== "db");
}
