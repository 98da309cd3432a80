import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Reporter, Vitest } from "vitest/node";

const TEST = fileURLToPath(new URL(".", import.meta.url));

/** Files that only `npm run test:all` runs: vitest.config.ts says which, and why. */
const LEFT_OUT = /\.long\.test\.ts$|^(?:interop|browser|models)\b.*\.test\.ts$/;

/** Says at the end of `npm test` what it has left out, and how to run that. */
export class LeftOut implements Reporter {
  #isAll = false;

  onInit({ projects }: Vitest): void {
    this.#isAll = projects.some(({ name }) => name === "long");
  }

  onTestRunEnd(): void {
    if (this.#isAll) return;
    const files = readdirSync(TEST, { recursive: true, encoding: "utf8" });
    const count = files.filter((file) => LEFT_OUT.test(file)).length;
    console.log(
      `Left out: ${count} files of long tests (outages, Sentinels, Clusters, packing, Java, Chromium).` +
        " `npm run test:all` runs them too.",
    );
  }
}
