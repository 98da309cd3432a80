import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { LongFirst } from "./long-first.ts";

// `IOREDIS=5 npm test` puts ioredis 5 in the place of the newest, in the programs that tests start as
// well: those run by tsx, which takes it from a tsconfig.
const isOlder = process.env["IOREDIS"] === "5";
if (isOlder) {
  process.env["TSX_TSCONFIG_PATH"] = fileURLToPath(
    new URL("tsconfig.ioredis5.json", import.meta.url),
  );
}
const resolve = { alias: isOlder ? [{ find: /^ioredis(?=\/|$)/, replacement: "ioredis5" }] : [] };

// With Redisson in Java; they need a JDK and Maven.
const INTEROP = "test/interop/**/*.test.ts";

// In a Chromium; without one they are skipped.
const BROWSER = "test/browser/**/*.test.ts";

const common = {
  // Processes, not threads: tests send signals, and some start processes of their own.
  pool: "forks",
  // A busy machine may take ten times as long as a quiet one.
  testTimeout: 120_000,
  // Some pack the package, which compiles it twice.
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
          // A process runs file after file: to start one and to load the code takes longer than most files.
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
          // Now and then Redisson cannot get its own subscription lock, and says so after 7.5 s.
          retry: 1,
          globalSetup: ["test/interop/setup.ts"],
          // After the others: Java takes all of the machine while it starts.
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
