import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { withPassword } from "../../../src/tools/cli/session/addresses.ts";
import { commandLine } from "../../../src/tools/cli/session/session.ts";

const here = { urls: [], isCluster: false, sentinel: undefined, interop: "none" } as const;

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
  for (const [url, shown] of [
    ["redis://:secret@other", "redis://default@other"],
    ["redis://me:secret@other/2", "redis://me@other/2"],
    ["redis://me@other", "redis://me@other"],
    ["redis://other?password=secret", "redis://default@other"],
    ["redis://other?sentinelPassword=secret", "'<the same>'"],
  ] as const) {
    expect(line("redis://a", url)).toBe(`npx delayline doctor --redis redis://a --redis ${shown}`);
  }
  expect(commandLine(["doctor"], { ...here, isCluster: true, interop: "redisson" })).toBe(
    "npx delayline doctor --cluster --interop redisson",
  );
});

test("behind Sentinels the command has the name of the master", () => {
  expect(commandLine(["stats"], { ...here, urls: ["redis://a:26379"], sentinel: "main" })).toBe(
    "npx delayline stats --redis redis://a:26379 --sentinel main",
  );
});

test("a URL with a user takes its password from REDISCLI_AUTH, unless it has one", () => {
  expect(withPassword("redis://me@other/2", "a b@c")).toBe("redis://me:a%20b%40c@other/2");
  for (const url of ["redis://other", "redis://me:own@other"]) {
    expect(withPassword(url, "secret")).toBe(url);
  }
});

test("an option is one by its place, not by how a word begins", () => {
  expect(commandLine(["list", "a", ["--limit", "3"]], here)).toBe("npx delayline list a --limit 3");
  expect(commandLine(["list", "--limit", ["--limit", "3"]], here)).toBeUndefined();
});
