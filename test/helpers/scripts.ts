import { readdir } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The folder of the scripts. */
export const LUA = fileURLToPath(new URL("../../src/lua/", import.meta.url));

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
