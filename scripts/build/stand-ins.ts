import { extname, join } from "node:path";
import { transformSync } from "esbuild";
import type { Plugin } from "rolldown";
import { ASSETS } from "../../src/tools/dashboard/assets.ts";
import { VERSION } from "../../src/tools/version.ts";
import { SRC } from "./site.ts";

/** The name under which a build imports {@link page}. */
export const PAGE = "delayline:page";

/**
 * Modules of `src` that read files beside them, and what stands for them in the package: the same values, as literals,
 * which bundles of users' programs take along.
 */
const STAND_INS: Readonly<Record<string, string>> = {
  "tools/dashboard/assets.ts": `export { ASSETS } from ${JSON.stringify(PAGE)};`,
  "tools/version.ts": `export const VERSION = ${JSON.stringify(VERSION)};`,
};

/** The files of the dashboard's page, as a CommonJS module: ES modules can import it, too. */
export function page(): string {
  const assets = Object.entries(ASSETS).map(([path, asset]) => {
    const isOurs = path.startsWith("page/");
    return [path, isOurs ? { ...asset, text: packed(path, asset.text) } : asset];
  });
  return `exports.ASSETS = ${JSON.stringify(Object.fromEntries(assets), undefined, 2)};\n`;
}

/** A file of ours without comments and spaces, and with short local names: they are a third of it. */
export function packed(path: string, text: string): string {
  const loader = LOADERS[extname(path)];
  if (loader === undefined) return text;
  const packs = { minifyWhitespace: true, minifyIdentifiers: true, charset: "utf8" } as const;
  const { code } = transformSync(text, { loader, ...packs });
  // What is left of them is the indentation of templates, which htm takes for one space, or for none.
  return code.replaceAll(/\n[ \t]+/g, "\n");
}

const LOADERS: Readonly<Record<string, "js" | "css">> = { ".js": "js", ".css": "css" };

/** Puts the stand-ins into a build of `src`. */
export function standIns(): Plugin {
  const texts = new Map(Object.entries(STAND_INS).map(([file, text]) => [join(SRC, file), text]));
  return {
    name: "stand-ins",
    load(id) {
      const code = texts.get(id);
      return code === undefined ? undefined : { code, moduleType: "js" };
    },
  };
}
