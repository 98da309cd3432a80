import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readPage } from "./pages.ts";

const { text } = readPage("CHANGELOG.md");
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };

test("the changelog begins with what is unreleased, and has the version of the package", () => {
  const versions = Array.from(text.matchAll(/^## (.*)$/gm), ([, title]) => title);
  expect(versions[0]).toBe("[Unreleased]");
  expect(versions[1]).toMatch(
    new RegExp(`^\\[${version.replaceAll(".", "\\.")}\\] - \\d{4}-\\d\\d-\\d\\d$`),
  );
});

test("each of its sections has one of the six kinds of changes, once in a version", () => {
  const kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];
  for (const section of text.split(/^## /m).slice(1)) {
    const found = Array.from(section.matchAll(/^### (.*)$/gm), ([, kind = ""]) => kind);
    expect(kinds).toEqual(expect.arrayContaining(found));
    expect(new Set(found).size).toBe(found.length);
  }
});
