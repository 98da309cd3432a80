import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { commandLine } from "../../../src/tools/cli/session/session.ts";

const here = { urls: [], isCluster: false, interop: "none" } as const;

test("a shell reads every word as it was, and runs nothing", () => {
  const words = ["a $(touch PWNED)", "it's", "`id`;!$HOME\\", "orders:1", "\u00e4 *"];
  const command = commandLine(words, here) ?? "";
  const script = command.replace(/^npx delayline/, String.raw`printf '%s\n'`);
  expect(execFileSync("sh", ["-c", script], { encoding: "utf8" })).toBe(`${words.join("\n")}\n`);
});

test.each(["a\u001bb", "a\nb", "a\u202eb", "a\ud800", "-x", ""])("%j cannot be pasted", (word) => {
  expect(commandLine(["doctor", word], here)).toBeUndefined();
});

const line = (...urls: string[]) => commandLine(["doctor"], { ...here, urls });

test("the command is for the same Redis, without its password", () => {
  expect(line("redis://other:6380/2")).toBe("npx delayline doctor --redis redis://other:6380/2");
  for (const url of ["redis://:secret@other", "redis://me@other", "redis://x?password=secret"]) {
    expect(line("redis://a", url)).toBe(
      "npx delayline doctor --redis redis://a --redis '<the same>'",
    );
  }
  expect(commandLine(["doctor"], { urls: [], isCluster: true, interop: "redisson" })).toBe(
    "npx delayline doctor --cluster --interop redisson",
  );
});
