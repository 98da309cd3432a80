import { createRequire } from "node:module";

/** The installed version of a package. */
export function versionOf(name: string): string {
  const require = createRequire(import.meta.url);
  return (require(`${name}/package.json`) as { readonly version: string }).version;
}
