import { readFileSync } from "node:fs";

/** The package's version. */
export const VERSION = readVersion();

// Only the source runs this: in the package the version is a literal (scripts/build/stand-ins.ts).
function readVersion(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { readonly version: string }).version;
}
