// Builds `dist`, the package's code: a few files for each entry, as ES modules in `dist` and as CommonJS in `dist/cjs`,
// with declarations beside them. Code that entries share is in one file per format, so a class is the same in all.
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildCode } from "./build/code.ts";
import { buildDeclarations } from "./build/declarations.ts";
import { DIST } from "./build/site.ts";
import { page } from "./build/stand-ins.ts";

const [esm, cjs, declarations] = await Promise.all([
  buildCode("esm", "."),
  buildCode("cjs", "cjs"),
  buildDeclarations(),
]);
const inCjs = [
  ...cjs,
  ...declarations,
  ["package.json", '{ "type": "commonjs" }\n'] as const,
  ["page.js", page()] as const,
];
const files = new Map([
  ...esm,
  ...declarations,
  ...inCjs.map(([name, text]) => [join("cjs", name), text] as const),
]);

// What runs on the last build meanwhile goes on: files are replaced, and only what has no successor goes.
await mkdir(join(DIST, "cjs"), { recursive: true });
for (const name of await readdir(DIST, { recursive: true })) {
  if (files.has(name) || name === "cjs") continue;
  await rm(join(DIST, name), { recursive: true, force: true });
}
for (const [name, text] of files) await writeFile(join(DIST, name), text);
