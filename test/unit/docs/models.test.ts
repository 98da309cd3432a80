import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ALL_MODELS } from "../../models/models.ts";
import { MODELS } from "../../models/tlc.ts";
import { readPage, ROOT } from "./pages.ts";

// The models in docs/project/models say which script each of their actions is. TLC checks the rest: test/models.

const PAGE = readPage("docs/project/models/models.md").text;

/** Who acts, if it is no script. */
const OTHERS = ["process", "environment", "mutant"];

describe.each(ALL_MODELS)("$name", ({ name, configurations, more = [], mutants, limits }) => {
  const text = readFileSync(`${MODELS}${name}.tla`, "utf8");
  const notes = new Map(
    Array.from(
      text.matchAll(/^\\\* @(.*)\n(?:\\\*.*\n)*(\w+)(?:\([^)]*\))? ==/gm),
      ([, note = "", action = ""]) => [action, note.split(" ")],
    ),
  );

  test("every action has a note that says who acts", () => {
    const next = /^Next ==\n((?: .*\n)+)/m.exec(text)?.[1] ?? "";
    const actions = Array.from(
      next.matchAll(/(?:\\\/|:) (\w+)(?:\([^)]*\))?$/gm),
      ([, action = ""]) => action,
    );
    expect(actions.length).toBeGreaterThan(5);
    expect(actions.filter((action) => !notes.has(action))).toEqual([]);
    const kinds = Array.from(notes.values(), ([kind = ""]) => kind);
    expect(kinds.filter((kind) => kind !== "script" && !OTHERS.includes(kind))).toEqual([]);
  });

  test("every script that an action names is there", () => {
    const scripts = [...notes.values()].filter(([kind]) => kind === "script");
    expect(scripts.length).toBeGreaterThan(2);
    expect(scripts.filter(([, path = "", script = ""]) => !isScript(path, script))).toEqual([]);
  });

  test("every mutant of the model is tried", () => {
    const inModel = Array.from(
      text.matchAll(/Mutant (?:=|#|\\in|\\notin) ({[^}]*}|"[^"]*")/g),
      ([, names = ""]) => Array.from(names.matchAll(/"([^"]*)"/g), ([, mutant = ""]) => mutant),
    ).flat();
    const tried = mutants.map(({ mutant }) => mutant);
    expect(new Set(tried)).toEqual(new Set(inModel));
    expect(new Set(mutants.map(({ breaks }) => breaks)).size).toBeGreaterThan(2);
  });

  test("the page names every promise, mutant and limit", () => {
    const promises = [...configurations, ...more].flatMap((configuration) => {
      const checked = readFileSync(`${MODELS}${configuration}.cfg`, "utf8");
      return Array.from(
        checked.matchAll(/^(?:INVARIANTS|PROPERTIES)\n((?: .*\n)*)/gm),
        ([, names = ""]) => names.split(/\s+/).filter((one) => one !== ""),
      ).flat();
    });
    const wanted = [
      ...promises.map((promise) => `\`${promise}\``),
      ...mutants.map(({ mutant }) => `"${mutant}"`),
      ...limits.map(({ promise }) => `\`${promise}\``),
    ];
    expect(wanted.filter((one) => !PAGE.includes(one))).toEqual([]);
  });
});

function isScript(path: string, script: string): boolean {
  if (!path.startsWith("src/lua/") || !existsSync(ROOT + path)) return false;
  return new RegExp(`^export const ${script}\\b`, "m").test(readFileSync(ROOT + path, "utf8"));
}
