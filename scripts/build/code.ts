import { join } from "node:path";
import { rolldown } from "rolldown";
import { COMMAND, ENTRIES, SHARED } from "./entries.ts";
import { lineMap } from "./line-map.ts";
import { DIST, EXTERNAL, SRC } from "./site.ts";
import { PAGE, standIns } from "./stand-ins.ts";

/** The code in one format, with source maps, by the files' names in `folder`, a folder of `dist`. */
export async function buildCode(
  format: "esm" | "cjs",
  folder: string,
): Promise<Map<string, string>> {
  const entries = format === "esm" ? { ...ENTRIES, ...COMMAND } : ENTRIES;
  await using bundle = await rolldown({
    input: Object.fromEntries(
      Object.entries(entries).map(([name, file]) => [name, join(SRC, file)]),
    ),
    platform: "node",
    external: [...EXTERNAL, PAGE],
    tsconfig: false,
    // As tsconfig.json has it.
    transform: { target: "es2022" },
    plugins: [standIns()],
  });
  const { output } = await bundle.generate({
    dir: join(DIST, folder),
    format,
    sourcemap: true,
    // Once for both formats: it is a fifth of the code.
    paths: { [PAGE]: format === "esm" ? "./cjs/page.js" : "./page.js" },
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
    codeSplitting: {
      groups: SHARED.map(([name, test], i) => ({ name, test, priority: SHARED.length - i })),
    },
    // The declarations have the docs.
    comments: { jsdoc: false },
  });
  const files = new Map<string, string>();
  for (const chunk of output) {
    if (chunk.type !== "chunk") continue;
    files.set(chunk.fileName, chunk.code);
    if (chunk.map !== null) files.set(`${chunk.fileName}.map`, lineMap(chunk.fileName, chunk.map));
  }
  return files;
}
