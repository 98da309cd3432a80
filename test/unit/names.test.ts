import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const src = fileURLToPath(new URL("../../src/", import.meta.url));

/** The files of src/ that declare and export each type, by its name. */
function exportedTypes(): Map<string, string[]> {
  const declared = new Map<string, string[]>();
  for (const file of readdirSync(src, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".ts")) continue;
    const names = readFileSync(src + file, "utf8").matchAll(
      /^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm,
    );
    for (const [, name = ""] of names) declared.set(name, [...(declared.get(name) ?? []), file]);
  }
  return declared;
}

test("no two types of src/ have one name", () => {
  const declared = exportedTypes();
  expect(declared.size).toBeGreaterThan(300);
  const shared = [...declared].filter(([, files]) => files.length > 1);
  expect(Object.fromEntries(shared)).toEqual({});
});
