import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";
import { ENTRIES } from "./entries.ts";
import { EXTERNAL, ROOT, SRC } from "./site.ts";
import { hideInternals } from "./hide-internals.ts";

const run = promisify(execFile);

/** Declarations of the entries, by their names in `dist`: those of the compiler, without internals, bundled. */
export async function buildDeclarations(): Promise<Map<string, string>> {
  const emitted = await mkdtemp(join(tmpdir(), "delayline-types-"));
  try {
    const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
    await run(process.execPath, [tsc, "-p", SRC, "--outDir", emitted]);
    for (const name of await readdir(emitted, { recursive: true })) {
      if (!name.endsWith(".d.ts")) continue;
      const file = join(emitted, name);
      await writeFile(file, hideInternals(await readFile(file, "utf8")));
    }
    const input = Object.entries(ENTRIES).map(([name, file]) => [
      name,
      join(emitted, file.replace(/\.ts$/, ".d.ts")),
    ]);
    await using bundle = await rolldown({
      input: Object.fromEntries(input) as Record<string, string>,
      external: EXTERNAL,
      tsconfig: false,
      plugins: [dts({ dtsInput: true, sourcemap: false, tsconfig: false })],
    });
    const { output } = await bundle.generate({ chunkFileNames: "[name].d.ts" });
    return new Map(
      output.flatMap((chunk) =>
        chunk.type === "chunk" ? [[chunk.fileName, withoutPaths(chunk.code)]] : [],
      ),
    );
  } finally {
    await rm(emitted, { recursive: true, force: true });
  }
}

/** Without the bundler's comments, which name the files on this machine. */
function withoutPaths(code: string): string {
  return code.replaceAll(/^\/\/ \S*delayline-types-\S*\n/gm, "");
}
