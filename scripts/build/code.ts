import { join } from "node:path";
import { rolldown, type Plugin } from "rolldown";
import { COMMAND, ENTRIES, SHARED } from "./entries.ts";
import { lineMap } from "./line-map.ts";
import { DIST, EXTERNAL, SRC } from "./site.ts";
import { PAGE, standIns } from "./stand-ins.ts";

/**
 * The code in one format, by the files' names in `folder`, a folder of `dist`: ES modules with source maps, and CommonJS
 * without spaces and with short local names. Node.js takes the ES modules for \`require\`, too; CommonJS is for bundlers and test runners.
 */
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
    plugins: [standIns(), withoutLuaComments],
  });
  const { output } = await bundle.generate({
    dir: join(DIST, folder),
    format,
    sourcemap: format === "esm",
    minify: format === "cjs" && {
      compress: false,
      mangle: { toplevel: false, keepNames: true },
      codegen: { removeWhitespace: true },
    },
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
    if (OF_THE_COMMAND.test(chunk.fileName)) {
      files.set(chunk.fileName, chunk.code.replace(/\n\/\/# sourceMappingURL=.*/, ""));
      continue;
    }
    files.set(chunk.fileName, chunk.code);
    if (chunk.map !== null) files.set(`${chunk.fileName}.map`, lineMap(chunk.fileName, chunk.map));
  }
  return files;
}

/** Blanks the comments of scripts, which Redis would load and keep. Each line stays where it is. */
const withoutLuaComments: Plugin = {
  name: "without-lua-comments",
  transform(code, id) {
    if (!id.startsWith(join(SRC, "lua/"))) return null;
    return { code: code.replaceAll(/^[ \t]*-- .*$/gm, ""), map: null };
  },
};

/** Files that only the command loads, which shows no stack traces. */
const OF_THE_COMMAND = /^(?:cli|command|every-command)\.js$/;
