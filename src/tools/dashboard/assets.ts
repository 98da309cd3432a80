import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

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
  return Object.fromEntries(
    files.map((file) => {
      const text = readFileSync(join(home, file), "utf8").replaceAll("\r\n", "\n");
      const type = TYPES[extname(file)];
      if (type === undefined) throw new Error(`${file}: no content type for this extension`);
      const tag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 16)}"`;
      return [file.split(sep).join("/"), { type, tag, text }];
    }),
  );
}
