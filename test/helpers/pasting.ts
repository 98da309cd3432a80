import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, onTestFinished } from "vitest";
import type { Finding } from "../../src/tools/doctor/diagnose.ts";
import { cli } from "./cli.ts";

/** Runs `delayline doctor`, and returns what it finds. */
export async function doctor(
  url: string,
  ...words: readonly string[]
): Promise<{ readonly code: number; readonly findings: readonly Finding[] }> {
  const { code, json } = await cli(["doctor", ...words, "--json", "--redis", url]);
  return { code, findings: json as unknown as Finding[] };
}

/** The finding of this check, which has to be there once. */
export function onlyOf(findings: readonly Finding[], check: Finding["check"]): Finding {
  const found = findings.filter((finding) => finding.check === check);
  expect(found, JSON.stringify(findings, null, 2)).toHaveLength(1);
  return found[0] as Finding;
}

/** The commands of a repair, as the doctor prints them on lines of their own. */
export function commandsOf({ repair }: Finding): string[] {
  return Array.from(
    repair.matchAll(/`((?:npx|redis-cli|for) [^`]*)`/g),
    ([, command = ""]) => command,
  );
}

/**
 * Runs a command in a shell, as if somebody had pasted it there, and expects that it succeeds. `npx delayline` runs the
 * source, and its questions are answered with yes.
 */
export async function paste(command: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const bin = await mkdtemp(join(tmpdir(), "delayline-bin-"));
  onTestFinished(() => rm(bin, { recursive: true, force: true }));
  // `npx delayline doctor` gets "delayline" as its first word.
  const script = `#!/bin/sh\nshift\nexec '${process.execPath}' '${inject("commandWithYes")}' "$@"\n`;
  await writeFile(join(bin, "npx"), script);
  await chmod(join(bin, "npx"), 0o755);
  const path = `${bin}:${process.env["PATH"] ?? ""}`;
  const running = promisify(execFile)("sh", ["-c", command], {
    env: { ...process.env, REDISCLI_AUTH: undefined, ...env, PATH: path },
  });
  // `redis-cli --cluster fix` asks.
  running.child.stdin?.on("error", () => {}).end("yes\n");
  const { stdout, stderr } = await running;
  // redis-cli exits with 0 although Redis refuses its command.
  expect(stdout + stderr, command).not.toMatch(
    /^(?:\(error\)|ERR|NOAUTH|WRONGPASS|NOPERM|MISCONF|READONLY|WRONGTYPE|AUTH failed|Could not connect)/m,
  );
  return stdout;
}

/** Pastes all commands of a finding's repair, one after another. */
export async function pasteAll(finding: Finding, env?: NodeJS.ProcessEnv): Promise<void> {
  const commands = commandsOf(finding);
  expect(commands, finding.repair).not.toEqual([]);
  for (const command of commands) await paste(command, env);
}
