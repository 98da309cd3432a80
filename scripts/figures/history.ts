import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

// How old figures are: by the commit beside them, and what has changed since in the code that they measure.

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Everything that runs when messages are offered, moved and taken. */
const HOT = ["src", ":!src/tools", ":!src/adapters"];

/** Figures that less code can change. */
const NARROWER: Readonly<Record<string, readonly string[]>> = {
  memory: ["src/lua", "src/codecs", "src/queue"],
  "compare memory": ["src/lua", "src/codecs", "src/queue"],
  "one-offer": ["src/lua", "src/codecs", "src/delayed", "src/redis", "src/time"],
  "compare offers": ["src/lua", "src/codecs", "src/delayed", "src/redis", "src/time"],
  "compare cancel": ["src/lua", "src/codecs", "src/delayed", "src/redis", "src/time"],
};

/** How much newer the code is than figures. */
export interface Age {
  /** Commits since that changed what the figures measure. */
  readonly commits: number;
  /** Days from the measured commit to the last of these. */
  readonly days: number;
}

/** Whether this clone can tell: it has a history, and all of it. */
export function hasHistory(): boolean {
  return git("rev-parse", "--is-shallow-repository") === "false";
}

/** Whether a commit is part of the history of what is checked out. */
export function isCommit(commit: string): boolean {
  return git("merge-base", "--is-ancestor", commit, "HEAD") !== undefined;
}

/** Compares figures of a commit with the code of today. Undefined if there is no such commit. */
export function ageOf(name: string, commit: string): Age | undefined {
  if (!isCommit(commit)) return undefined;
  const since = git("log", "--format=%ct", `${commit}..HEAD`, "--", ...(NARROWER[name] ?? HOT));
  const times = (since ?? "").split("\n").filter((line) => line !== "");
  const measuredAt = Number(git("log", "-1", "--format=%ct", commit));
  const last = Math.max(measuredAt, ...times.map(Number));
  return { commits: times.length, days: (last - measuredAt) / 86_400 };
}

function git(...args: string[]): string | undefined {
  try {
    return execFileSync("git", args, { cwd: ROOT, encoding: "utf8", stdio: "pipe" }).trim();
  } catch {
    return undefined;
  }
}
