// Writes src/dashboard/embedded.ts: the files of the dashboard's page as strings, so that they are there in `dist`, in
// CommonJS and in bundles, where no file can be found at run time. `npm run build` does this first.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const dashboard = join(root, "src/dashboard");

/** Where the files are, in src/dashboard; each is served under its path in there. */
const FOLDERS = ["page", "vendor"];

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

/** The contents of the generated file, as they should be. */
export function embedded(): string {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    version: string;
  };
  const files = FOLDERS.flatMap((folder) => filesOf(folder));
  const lines = files.map((file) => {
    const text = readFileSync(join(dashboard, file), "utf8").replaceAll("\r\n", "\n");
    const type = TYPES[extname(file)];
    if (type === undefined) throw new Error(`${file}: of what type is it?`);
    const tag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 16)}"`;
    return `  ${JSON.stringify(file)}: ${JSON.stringify({ type, tag, text })},\n`;
  });
  return `// Written by scripts/embed.ts from page/ and vendor/. Change those.

/** A file of the page. */
export interface Asset {
  readonly type: string;
  /** Changes with the contents. */
  readonly tag: string;
  readonly text: string;
}

/** The package's version. */
export const VERSION = ${JSON.stringify(version)};

/** The files of the page, by the path at which they are served. */
export const ASSETS: Readonly<Record<string, Asset>> = {
${lines.join("")}};
`;
}

/** The files of a folder, by their paths in src/dashboard. */
function filesOf(folder: string): string[] {
  const path = join(dashboard, folder);
  if (!existsSync(path)) return [];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dashboard, join(entry.parentPath, entry.name)))
    .map((file) => file.split(sep).join("/"))
    .toSorted();
}

const target = join(dashboard, "embedded.ts");
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = embedded();
  // Left alone if it is right, so that nothing is compiled anew.
  if (!existsSync(target) || readFileSync(target, "utf8") !== text) writeFileSync(target, text);
}
