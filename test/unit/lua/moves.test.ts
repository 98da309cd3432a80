import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const lua = fileURLToPath(new URL("../../../src/lua", import.meta.url));
const moves = fileURLToPath(new URL("../../moves", import.meta.url));

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts"),
  );
}

/** The files of scripts, by their paths in src/lua. Files outside a room define no script of their own. */
function scripts(): string[] {
  return filesIn(lua)
    .filter((file) => file.includes(sep))
    .filter((file) => /\bdefineScript\(/.test(readFileSync(join(lua, file), "utf8")));
}

/** What the tests in test/moves import, by its path in src/lua. */
function importedByMoves(): Set<string> {
  const paths = filesIn(moves).flatMap((file) => {
    const imports = readFileSync(join(moves, file), "utf8").matchAll(/\bfrom "(\.[^"]+)"/g);
    return [...imports].map(([, path = ""]) => relative(lua, join(moves, dirname(file), path)));
  });
  return new Set(paths);
}

test("every script is tested in test/moves", () => {
  const found = scripts();
  expect(found).toContain(join("delayed", "offer.ts"));
  const imported = importedByMoves();
  expect(found.filter((file) => !imported.has(file))).toEqual([]);
});
