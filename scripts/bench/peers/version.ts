import { createRequire } from "node:module";

/** Which version of a package is installed. */
export function versionOf(name: string): string {
  const require = createRequire(import.meta.url);
  return (require(`${name}/package.json`) as { readonly version: string }).version;
}
