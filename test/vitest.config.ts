import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { LeftOut } from "./left-out.ts";

// `IOREDIS=5 npm test` replaces the newest ioredis by ioredis 5, also in the programs that tests start: tsx, which runs
// them, reads the path from a tsconfig.
const isOlder = process.env["IOREDIS"] === "5";
if (isOlder) {
  process.env["TSX_TSCONFIG_PATH"] = fileURLToPath(
    new URL("tsconfig.ioredis5.json", import.meta.url),
  );
}
const resolve = { alias: isOlder ? [{ find: /^ioredis(?=\/|$)/, replacement: "ioredis5" }] : [] };

const ALL = "test/**/*.test.ts";

// Tests of pure code, and of the docs, which need no Redis.
const UNIT = "test/unit/**/*.test.ts";

// Tests that `npm test` leaves to `npm run test:all`: they start Sentinels, a Cluster or many processes, pack the
// package, or take more than a few seconds.
const LONG = "test/**/*.long.test.ts";

// Tests against Redisson in Java, which need a JDK and Maven. Only `npm run test:all` runs them.
const INTEROP = "test/interop/**/*.test.ts";

// Tests in a Chromium; without one they are skipped. Only `npm run test:all` runs them.
const BROWSER = "test/browser/**/*.test.ts";

// The models in docs/project/models, checked by TLC, which needs Java and Maven. Only `npm run test:all` runs them.
const MODELS = "test/models/**/*.test.ts";

const SERVER = "test/helpers/global-setup.ts";

const COMMAND = "test/helpers/command-setup.ts";

// Files that run at once. On two cores that is one more than there are cores, because most tests mostly wait.
const AT_ONCE = 3;

const common = {
  // Processes, not threads: tests send signals, start processes and set the time zone.
  pool: "forks",
  // A process runs file after file: starting one and loading the code takes longer than most files.
  isolate: false,
  // A busy machine may take ten times as long as a quiet one.
  testTimeout: 120_000,
  hookTimeout: 120_000,
} as const;

// Vitest runs the projects of one group in the order of their names, and begins one while another ends. So the long
// files come first, and none of them runs on alone at the end.
export default defineConfig({
  resolve,
  test: {
    // A line per file, in a terminal and in a pipe.
    reporters: ["default", new LeftOut()],
    projects: [
      {
        resolve,
        test: {
          ...common,
          name: "unit",
          maxWorkers: AT_ONCE,
          include: [UNIT],
          setupFiles: ["test/helpers/fake-runtime.ts"],
        },
      },
      {
        resolve,
        test: {
          ...common,
          name: "short",
          maxWorkers: AT_ONCE,
          include: [ALL],
          exclude: [UNIT, LONG, INTEROP, BROWSER, MODELS],
          globalSetup: [SERVER, COMMAND],
        },
      },
      {
        resolve,
        test: {
          ...common,
          name: "long",
          maxWorkers: AT_ONCE,
          include: [LONG],
          globalSetup: [SERVER, COMMAND],
        },
      },
      {
        resolve,
        test: {
          ...common,
          name: "redisson",
          include: [INTEROP],
          maxWorkers: 2,
          isolate: true,
          // Now and then Redisson cannot get its own subscription lock, and reports that after 7.5 s.
          retry: 1,
          globalSetup: [SERVER, "test/interop/setup.ts"],
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
          maxWorkers: 2,
          globalSetup: [SERVER, "test/browser/setup.ts"],
          sequence: { groupOrder: 2 },
        },
      },
      {
        resolve,
        test: {
          ...common,
          name: "models",
          include: [MODELS],
          testTimeout: 600_000,
          globalSetup: ["test/models/setup.ts"],
          // TLC uses one core each time, and all of it.
          maxConcurrency: 2,
          sequence: { groupOrder: 3, concurrent: true },
        },
      },
    ],
  },
});
