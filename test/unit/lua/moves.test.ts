import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { LUA, scriptsByFile } from "../../helpers/scripts.ts";

const moves = fileURLToPath(new URL("../../moves", import.meta.url));

/** What the tests in test/moves import from src/lua, such as `delayed/offer.ts offer`. */
function importedByMoves(): Set<string> {
  const files = readdirSync(moves, { recursive: true, encoding: "utf8" });
  const imported = files
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) => {
      const source = readFileSync(join(moves, file), "utf8");
      return Array.from(
        source.matchAll(/\{([^{}]*)\} from "(\.[^"]+)"/g),
        ([, names = "", path = ""]) => {
          const from = relative(LUA, join(moves, dirname(file), path))
            .split(sep)
            .join("/");
          return names.split(",").map((name) => `${from} ${name.trim().replace(/ as .*/, "")}`);
        },
      ).flat();
    });
  return new Set(imported);
}

test("every script is tested in test/moves", async () => {
  const scripts = [...(await scriptsByFile())].flatMap(([file, names]) =>
    names.map((name) => `${file} ${name}`),
  );
  expect(scripts).toContain("delayed/offer.ts offer");
  const imported = importedByMoves();
  expect(scripts.filter((script) => !imported.has(script))).toEqual([]);
});
