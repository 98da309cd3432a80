import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { PLACES, SHOWN } from "../../inside.ts";

/** A file of the page. */
export interface Asset {
  /** The content type. */
  readonly type: string;
  /** The ETag, a hash of the text. */
  readonly tag: string;
  readonly text: string;
}

/** The folders that hold the page. */
const FOLDERS = ["page", "vendor"];

/** Content types by file extension. */
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

/** The files of the page, by the path under which they are served. */
export const ASSETS: Readonly<Record<string, Asset>> = readAssets();

// Only the source runs this. In the package the files are literals (scripts/build/stand-ins.ts): a bundle of a user's
// program has no files beside it.
function readAssets(): Record<string, Asset> {
  const home = fileURLToPath(new URL(".", import.meta.url));
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(home, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(home, join(entry.parentPath, entry.name)))
      .toSorted(),
  );
  const texts = files
    .filter((file) => !file.endsWith(".d.ts"))
    .map((file): [path: string, text: string] => [
      file.split(sep).join("/"),
      readFileSync(join(home, file), "utf8").replaceAll("\r\n", "\n"),
    ]);
  const shared = readFileSync(join(home, "../view/words.js"), "utf8").replaceAll("\r\n", "\n");
  const made = [
    ["page/data/tables.js", tables()],
    ["page/data/words.js", shared],
  ] as const;
  return Object.fromEntries(
    [...texts, ...made].map(([path, text]) => {
      const type = TYPES[extname(path)];
      if (type === undefined) throw new Error(`${path}: no content type for this extension`);
      const tag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 16)}"`;
      return [path, { type, tag, text }];
    }),
  );
}

/** What the page has to know of the numbers and the places of a queue, as a module. `tables.d.ts` declares it. */
function tables(): string {
  const numbers = SHOWN.map(({ name, label, unit }) => [name, { label, unit }]);
  const places = Object.entries(PLACES).map(([name, row]) => {
    const { keys: _, ...told } = row;
    return [name, told];
  });
  return Object.entries({ NUMBERS: numbers, PLACES: places })
    .map(([name, rows]) => `export const ${name} = ${JSON.stringify(Object.fromEntries(rows))};\n`)
    .join("");
}
