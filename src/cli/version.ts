import { readFileSync } from "node:fs";

/** The package's version, as its manifest has it. */
export function readVersion(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { readonly version: string }).version;
}
