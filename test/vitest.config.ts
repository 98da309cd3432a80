import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { LongFirst } from "./long-first.ts";

// `IOREDIS=5 npm test` replaces the newest ioredis by ioredis 5, also in the programs that tests start: tsx, which runs
// them, reads the path from a tsconfig.
const isOlder = process.env["IOREDIS"] === "5";
if (isOlder) {
  process.env["TSX_TSCONFIG_PATH"] = fileURLToPath(
    new URL("tsconfig.ioredis5.json", import.meta.url),
  );
}
const resolve = { alias: isOlder ? [{ find: /^ioredis(?=\/|$)/, replacement: "ioredis5" }] : [] };

// Tests against Redisson in Java, which need a JDK and Maven.
const INTEROP = "test/interop/**/*.test.ts";

// Tests in a Chromium; without one they are skipped.
const BROWSER = "test/browser/**/*.test.ts";

const common = {
  // Processes, not threads: tests send signals and start processes.
  pool: "forks",
  // A busy machine may take ten times as long as a quiet one.
  testTimeout: 120_000,
  // Some hooks pack the package, which builds it.
  hookTimeout: 300_000,
} as const;

export default defineConfig({
  resolve,
  test: {
    globalSetup: ["test/helpers/global-setup.ts"],
    sequence: { sequencer: LongFirst },
    projects: [
      {
        resolve,
        test: {
          ...common,
          name: "node",
          include: ["test/**/*.test.ts"],
          exclude: [INTEROP, BROWSER],
          maxWorkers: 2,
          // A process runs file after file: starting one and loading the code takes longer than most files.
          isolate: false,
        },
      },
      {
        resolve,
        test: {
          ...common,
          name: "redisson",
          include: [INTEROP],
          maxWorkers: 2,
          // Now and then Redisson cannot get its own subscription lock, and reports that after 7.5 s.
          retry: 1,
          globalSetup: ["test/interop/setup.ts"],
          // After the others: Java needs the whole machine while it starts.
          sequence: { groupOrder: 1 },
        },
      },
      {
        resolve,
        test: {
          ...common,
          name: "browser",
          include: [BROWSER],
          isolate: false,
          globalSetup: ["test/browser/setup.ts"],
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
