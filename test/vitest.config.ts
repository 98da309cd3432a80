import { defineConfig } from "vitest/config";

// With Redisson in Java; they need a JDK and Maven.
const INTEROP = "test/interop/**/*.test.ts";

const common = {
  // Processes, not threads: tests send signals, and some start processes of their own.
  pool: "forks",
  testTimeout: 30_000,
  hookTimeout: 60_000,
} as const;

export default defineConfig({
  test: {
    globalSetup: ["test/helpers/global-setup.ts"],
    maxWorkers: 2,
    projects: [
      { test: { ...common, name: "node", include: ["test/**/*.test.ts"], exclude: [INTEROP] } },
      {
        test: {
          ...common,
          name: "redisson",
          include: [INTEROP],
          // Now and then Redisson cannot get its own subscription lock, and says so after 7.5 s.
          retry: 1,
          globalSetup: ["test/interop/setup.ts"],
          // After the others: Java takes all of the machine while it starts.
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
