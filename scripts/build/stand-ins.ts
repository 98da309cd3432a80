import { join } from "node:path";
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

/**
 * The files of the dashboard's page, as a CommonJS module: ES modules can import it, too. Without comments and indentation,
 * which are a fifth of our own files.
 */
export function page(): string {
  const assets = Object.entries(ASSETS).map(([path, asset]) => {
    const isOurs = path.startsWith("page/");
    return [path, isOurs ? { ...asset, text: withoutComments(asset.text) } : asset];
  });
  return `exports.ASSETS = ${JSON.stringify(Object.fromEntries(assets), undefined, 2)};\n`;
}

/** Drops indentation, and comments that have lines of their own. */
export function withoutComments(text: string): string {
  return text
    .replaceAll(/^[ \t]+/gm, "")
    .replaceAll(/^(?:\/\*[^]*?\*\/|\/\/.*)\n/gm, "")
    .replaceAll(/\n{2,}/g, "\n");
}

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
