import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readPage, ROOT } from "./pages.ts";

const EXAMPLES = readdirSync(`${ROOT}examples`, { recursive: true, encoding: "utf8" }).filter(
  (file) => file.endsWith(".ts"),
);

test("in a fresh clone each command of the README's works as it stands: nothing is installed before", () => {
  const { text } = readPage("README.md");
  const section = /^## Try it$(.*?)^## /ms.exec(text)?.[1] ?? "";
  const commands = Array.from(section.matchAll(/^(.*?) +# /gm), ([, command = ""]) => command);
  expect(commands.length).toBeGreaterThan(2);
  for (const command of commands) expect(command).toMatch(/^npm ci && \S/);
  const [, block = "", rest = ""] = /^```sh\n(.*?)^```\n(.*)$/ms.exec(section) ?? [];
  expect(rest).not.toMatch(/`np[mx] /);
  for (const [, file = ""] of block.matchAll(/npx tsx (\S+)/g)) {
    expect(existsSync(ROOT + file), file).toBe(true);
  }
});

test("the README is short: 120 lines, and a first program of 12", () => {
  const { text } = readPage("README.md");
  expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(120);
  const [, program = ""] = /^```js\n(.*?)^```$/ms.exec(text) ?? [];
  const lines = program.split("\n").filter((line) => line !== "" && !line.startsWith("//"));
  expect(lines.length).toBeGreaterThan(5);
  expect(lines.length).toBeLessThanOrEqual(12);
});

test("examples import the package by names that lead to its source, without a build", () => {
  const { compilerOptions } = JSON.parse(readFileSync(`${ROOT}tsconfig.json`, "utf8")) as {
    compilerOptions: { paths: Record<string, readonly string[]> };
  };
  for (const file of EXAMPLES) {
    const text = readFileSync(`${ROOT}examples/${file}`, "utf8");
    for (const [, name = ""] of text.matchAll(/from "(delayline[^"]*)"/g)) {
      const [source = ""] = compilerOptions.paths[name] ?? [];
      expect(existsSync(ROOT + source), `${file}: ${name}`).toBe(true);
    }
  }
});

test("the README's pauses are all retries that its queue makes", () => {
  const { text } = readPage("README.md");
  const [, pauses = "", attempts] = /retry: \[(.*?)\],.*?\bmaxAttempts: (\d+)/s.exec(text) ?? [];
  expect(Number(attempts)).toBe(pauses.split(",").length + 1);
});
