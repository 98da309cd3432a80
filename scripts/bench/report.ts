import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { arch, platform, release, totalmem } from "node:os";
import { dirname } from "node:path";
import { versionOf } from "./peers/version.ts";

/** The code that was measured. */
interface Code {
  /** The commit, short; "unknown" outside of a repository. */
  readonly commit: string;
  /** Whether files differed from the commit. */
  readonly isChanged: boolean;
  /** The versions of the libraries. */
  readonly versions: Readonly<Record<string, string>>;
}

/** What all results of a run have in common. */
export interface Origin {
  readonly at: Date;
  readonly code: Code;
  readonly system: string;
  readonly memory: string;
}

/** Describes the code in this directory, and the machine that runs it, as far as it is always the same. */
export function describeOrigin(): Origin {
  const status = git("status", "--porcelain", "--untracked-files=no");
  const versions = ["ioredis", "bullmq", "bee-queue"].map((name) => [name, versionOf(name)]);
  return {
    at: new Date(),
    code: {
      commit: git("rev-parse", "--short", "HEAD") ?? "unknown",
      isChanged: status !== "",
      versions: Object.fromEntries(versions) as Record<string, string>,
    },
    system: `${platform()} ${release()} ${arch()}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
  };
}

/** Where the results of a run are kept, beside the page that names them. */
export function resultsFile(what: string, { at, code }: Pick<Origin, "at" | "code">): string {
  const day = at.toISOString().slice(0, 10);
  const commit = code.isChanged ? `${code.commit}-changed` : code.commit;
  return `docs/benchmarks/results/${what}-${day}-${commit}.json`;
}

/** Writes the results of a run: each figure with its value in every round. */
export async function writeReport(file: string, report: object): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(report, undefined, 2)}\n`);
}

function git(...args: string[]): string | undefined {
  try {
    return execFileSync("git", args, { encoding: "utf8", stdio: "pipe" }).trim();
  } catch {
    return undefined;
  }
}
