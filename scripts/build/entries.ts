/** The package's entries: each name is a file of `dist`, made of this file of `src`. */
export const ENTRIES: Readonly<Record<string, string>> = {
  index: "index.ts",
  events: "events.ts",
  redisson: "adapters/redisson/index.ts",
  testing: "adapters/testing/index.ts",
  dashboard: "tools/dashboard/index.ts",
  nestjs: "adapters/nestjs/index.ts",
  opentelemetry: "adapters/opentelemetry/index.ts",
  prometheus: "adapters/prometheus/index.ts",
};

/** The command: an ES module only, since nobody requires it. */
export const COMMAND = { cli: "tools/cli/index.ts" };

/**
 * The files that entries share, by the rooms of `src` that they begin with; each takes along what its rooms import,
 * unless a file further up has it. The order matters: what an entry does not need must not come with what it needs.
 */
export const SHARED: readonly (readonly [name: string, rooms: RegExp])[] = [
  // Java's codecs need no client, and no Redis.
  ["codecs", /\/src\/codecs\//],
  // Spans and metrics listen to channels alone.
  ["observe", /\/src\/observe\//],
  // Keys, names, checks and the bytes of a message: pure code.
  ["queue", /\/src\/(?:time\/|queue\/(?:message\/|keys|checks|numbers))/],
  ["client", /\/src\/(?:client\/|index\.ts$)/],
  ["server", /\/src\/tools\/dashboard\//],
  ["command", /\/src\/tools\/cli\/main\.ts$/],
];
