import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { sbom } from "../../scripts/sbom.ts";

const LOCK = fileURLToPath(new URL("../../package-lock.json", import.meta.url));

test("the list of what a release brings along is that of the lock file, and needs no network", () => {
  vi.stubEnv("npm_config_registry", "http://127.0.0.1:9/");
  const { metadata, components, dependencies } = sbom();
  vi.unstubAllEnvs();

  const { packages } = JSON.parse(readFileSync(LOCK, "utf8")) as {
    packages: Record<string, { version: string; dev?: boolean }>;
  };
  const wanted = Object.entries(packages)
    .filter(([path, { dev }]) => path !== "" && !dev)
    .map(([path, { version }]) => `${path.replace(/.*node_modules\//, "")}@${version}`);
  expect(wanted).toContainEqual(expect.stringMatching(/^msgpackr@/));
  const listed = components.map((one) => one["bom-ref"]);
  expect(listed.toSorted()).toEqual(wanted.toSorted());

  expect(metadata.component.name).toBe("delayline");
  const own = dependencies.find(({ ref }) => ref === metadata.component["bom-ref"]);
  expect(own?.dependsOn).toEqual([expect.stringMatching(/^msgpackr@/)]);
});
