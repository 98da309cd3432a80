import { readFileSync } from "node:fs";

/** The version in the package's manifest. */
export function readVersion(): string {
  const manifest = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { readonly version: string }).version;
}
