import { readdir } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Script } from "../../src/lua/script.ts";

/** The folder of the scripts. */
export const LUA = fileURLToPath(new URL("../../src/lua/", import.meta.url));

type AnyScript = Pick<Script<never, never, unknown, never>, "name" | "lua" | "source">;

/** All scripts that files in `src/lua` export, each form of a family. */
export async function allScripts(): Promise<AnyScript[]> {
  const found = new Set<AnyScript>();
  const collect = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    if ("sha" in value) found.add(value as unknown as AnyScript);
    else if (Object.getPrototypeOf(value) === Object.prototype)
      for (const each of Object.values(value)) collect(each);
  };
  for (const file of await readdir(LUA, { recursive: true })) {
    if (!file.endsWith(".ts")) continue;
    const exported = (await import(pathToFileURL(LUA + file).href)) as object;
    for (const each of Object.values(exported)) collect(each);
  }
  return [...found];
}

/** The names of the exported scripts of each file in `src/lua`, by its path there. A family of scripts has one name. */
export async function scriptsByFile(): Promise<Map<string, string[]>> {
  const files = await readdir(LUA, { recursive: true });
  const scripts = new Map<string, string[]>();
  for (const file of files.filter((path) => path.endsWith(".ts")).toSorted()) {
    const exported = (await import(pathToFileURL(LUA + file).href)) as object;
    const names = Object.entries(exported).filter(([, value]) => isScript(value));
    if (names.length > 0)
      scripts.set(file.replaceAll("\\", "/"), names.map(([name]) => name).toSorted());
  }
  return scripts;
}

function isScript(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if ("sha" in value) return true;
  const forms = Object.values(value);
  return forms.length > 0 && forms.every(isScript);
}
