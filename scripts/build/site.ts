import { join } from "node:path";
import { fileURLToPath } from "node:url";
import manifest from "../../package.json" with { type: "json" };

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const SRC = join(ROOT, "src");
export const DIST = join(ROOT, "dist");

/** Node.js's modules, dependencies and peers stay imports. */
export const EXTERNAL: RegExp[] = [
  /^node:/,
  ...Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }).map(
    (name) => new RegExp(`^${name}(?:/|$)`),
  ),
];
