import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { guarded } from "../../../src/lua/guarded.ts";
import { allScripts } from "../../helpers/scripts.ts";
import { mutants as mutations } from "../../simulation/exhaustive/mutations.ts";
import { edited } from "../../simulation/mutants/mutant.ts";
import { MUTANTS } from "../../simulation/mutants/table.ts";

const root = new URL("../../../", import.meta.url);

it("has more than forty mutants, each with a name of its own", () => {
  const names = MUTANTS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThan(40);
});

it("refuses a text that is missing, and one that is there twice", () => {
  const edit = { file: "a.ts", find: "one", replace: "$&" };
  expect(edited("1 one 2", edit)).toBe("1 $& 2");
  expect(() => edited("1 2", edit)).toThrow("src/a.ts has this 0 times, not once: one");
  expect(() => edited("one one", edit)).toThrow("src/a.ts has this 2 times, not once: one");
});

describe.each(MUTANTS)("$name", ({ edits, tests, breaks }) => {
  it("changes texts that the source has exactly once", () => {
    const sources = new Map<string, string>();
    for (const edit of edits) {
      const file = new URL(`src/${edit.file}`, root);
      const before = sources.get(edit.file) ?? readFileSync(file, "utf8");
      sources.set(edit.file, edited(before, edit));
      expect(sources.get(edit.file)).not.toBe(before);
    }
  });

  it("says in a sentence what is broken, and names tests that there are", () => {
    expect(breaks).toMatch(/^\w[^\n]+\.$/);
    const missing = tests.filter(
      (test) => !existsSync(fileURLToPath(new URL(`test/${test}`, root))),
    );
    expect(missing).toEqual([]);
  });
});

describe("a mutant of a script, for all orders", async () => {
  const ordinary = await allScripts();
  const scripts = [...ordinary, ...ordinary.map((script) => guarded(script as never))];

  it.each(mutations)("$name: changes a text that the script has", ({ script, find, replace }) => {
    const mutated = scripts.filter(
      ({ name, lua }) => name.startsWith(script) && lua.includes(find),
    );
    expect(mutated.length).toBeGreaterThan(0);
    expect(replace).not.toBe(find);
  });
});
