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
  [
    "lua/delayed",
    "lua/ready",
    "lua/reliable",
    "lua/reliable/retries",
    "lua/reliable/dead",
    "lua/queue",
    "lua/partitions",
  ],
  ["lua/fragments/delayed", "lua/fragments/partitions"],
  ["lua/fragments/failed"],
  ["lua/fragments/stream", "lua/fragments/message"],
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
  redisson: ["codecs"],
  testing: [],
  inspect: [
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
  doctor: ["doctor/checks", "doctor/looks", "inspect", "client", "queue", "errors.ts"],
  // Judge what was seen; ask nothing.
  "doctor/checks": ["doctor/looks", "inspect", "observe", "partitions", "failure.ts"],
  // Ask Redis.
  "doctor/looks": [
    "inspect",
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
  dashboard: [
    "dashboard/calls",
    "dashboard/readings",
    "dashboard/http",
    "inspect",
    "queue",
    "errors.ts",
  ],
  "dashboard/calls": ["dashboard/readings", "dashboard/http", "inspect", "delayed", "queue"],
  "dashboard/readings": ["dashboard/http", "inspect", "observe", "errors.ts"],
  "dashboard/http": [],
  cli: ["cli/commands", "cli/session", "cli/printing", "cli/parsing", "inspect", "errors.ts"],
  "cli/commands": [
    "cli/session",
    "cli/printing",
    "cli/parsing",
    "dashboard",
    "doctor",
    "inspect",
    "reliable",
    "queue",
    "observe",
    "errors.ts",
  ],
  "cli/session": ["cli/printing", "cli/parsing", "inspect", "errors.ts"],
  "cli/printing": ["cli/parsing", "inspect", "time"],
  "cli/parsing": ["inspect", "queue", "time"],
  // The page: it runs in a browser, and reaches the server by HTTP alone.
  "dashboard/page": [
    "dashboard/page/pages",
    "dashboard/page/parts",
    "dashboard/page/data",
    "dashboard/vendor",
  ],
  "dashboard/page/pages": [
    "dashboard/page/sections",
    "dashboard/page/parts",
    "dashboard/page/data",
    "dashboard/vendor",
  ],
  "dashboard/page/sections": ["dashboard/page/parts", "dashboard/page/data", "dashboard/vendor"],
  "dashboard/page/parts": ["dashboard/page/data", "dashboard/vendor"],
  "dashboard/page/data": ["dashboard/vendor"],
  "dashboard/page/styles": [],
  "dashboard/vendor": [],
  opentelemetry: ["observe"],
  prometheus: ["client", "queue", "observe"],
  nestjs: ["client", "delayed", "ready", "reliable", "queue"],
};
