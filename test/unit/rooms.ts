// The rooms of src/, and who may import whom; docs/internals.md has the same tables. A room is a folder, or a file on
// the ground floor.

/** From the top down. A room imports itself and what is below its floor, and no neighbour. */
export const FLOORS: readonly (readonly string[])[] = [
  ["index.ts"],
  ["client"],
  ["partitions"],
  ["partitions/change"],
  ["partitions/exclusive", "partitions/taking"],
  ["partitions/routing"],
  ["partitions/parts"],
  ["partitions/ring"],
  ["reliable"],
  ["reliable/consuming"],
  ["reliable/group"],
  ["delayed", "ready"],
  ["delayed/transfer", "delayed/offering"],
  ["queue/consuming"],
  ["queue"],
  ["queue/message"],
  ["observe"],
  ["lua/delayed", "lua/ready", "lua/reliable", "lua/queue", "lua/partitions"],
  ["lua/fragments"],
  ["lua"],
  ["redis"],
  ["errors.ts"],
  ["failure.ts"],
];

/** Pure code: every room may import it, and it imports nothing of the others. */
export const FOUNDATIONS = ["time", "codecs"];

/**
 * What stands on top of the queues, optional, which no other room imports, and what each room of it may import. A room of
 * the house stands for all rooms in it: `queue` for `queue/message`, too.
 */
export const ANNEXES: Readonly<Record<string, readonly string[]>> = {
  "adapters/redisson": ["codecs"],
  "adapters/testing": [],
  tools: [],
  "tools/inspect": [
    "client",
    "reliable",
    "delayed",
    "ready",
    "queue",
    "observe",
    "errors.ts",
    "codecs",
    "time",
  ],
  "tools/doctor": [
    "tools/doctor/checks",
    "tools/doctor/looks",
    "tools/inspect",
    "client",
    "queue",
    "errors.ts",
  ],
  // Judge what was seen; ask nothing.
  "tools/doctor/checks": [
    "tools/doctor/looks",
    "tools/inspect",
    "observe",
    "partitions",
    "failure.ts",
  ],
  // Ask Redis.
  "tools/doctor/looks": [
    "tools/inspect",
    "client",
    "partitions",
    "reliable",
    "queue",
    "observe",
    "redis",
    "errors.ts",
    "failure.ts",
    "time",
  ],
  "tools/dashboard": [
    "tools/dashboard/calls",
    "tools/dashboard/readings",
    "tools/dashboard/http",
    "tools/inspect",
    "tools",
    "queue",
    "errors.ts",
  ],
  "tools/dashboard/calls": [
    "tools/dashboard/readings",
    "tools/dashboard/http",
    "tools/inspect",
    "delayed",
    "queue",
  ],
  "tools/dashboard/readings": ["tools/dashboard/http", "tools/inspect", "observe", "errors.ts"],
  "tools/dashboard/http": [],
  "tools/cli": ["tools/cli/commands", "tools/cli/session", "tools/inspect", "tools", "errors.ts"],
  "tools/cli/commands": [
    "tools/cli/session",
    "tools/dashboard",
    "tools/doctor",
    "tools/inspect",
    "reliable",
    "queue",
    "observe",
    "errors.ts",
  ],
  "tools/cli/session": ["tools/inspect", "queue", "errors.ts", "time"],
  // The page: it runs in a browser, and reaches the server by HTTP alone.
  "tools/dashboard/page": [
    "tools/dashboard/page/pages",
    "tools/dashboard/page/parts",
    "tools/dashboard/page/data",
    "tools/dashboard/vendor",
  ],
  "tools/dashboard/page/pages": [
    "tools/dashboard/page/sections",
    "tools/dashboard/page/parts",
    "tools/dashboard/page/data",
    "tools/dashboard/vendor",
  ],
  "tools/dashboard/page/sections": [
    "tools/dashboard/page/parts",
    "tools/dashboard/page/data",
    "tools/dashboard/vendor",
  ],
  "tools/dashboard/page/parts": ["tools/dashboard/page/data", "tools/dashboard/vendor"],
  "tools/dashboard/page/data": ["tools/dashboard/vendor"],
  "tools/dashboard/page/styles": [],
  "tools/dashboard/vendor": [],
  "adapters/opentelemetry": ["observe"],
  "adapters/prometheus": ["client", "queue", "observe"],
  "adapters/nestjs": ["client", "delayed", "ready", "reliable", "queue"],
};
