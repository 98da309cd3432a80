import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { ENTRIES } from "../../scripts/build/entries.ts";
import { ANNEXES, FLOORS, FOUNDATIONS } from "./rooms.ts";

// Who may import whom in src/, type imports included. A room is a folder, or a file directly in src/.

/** Places of messages, each with its scripts. A move between them is a script. */
const PLACES = ["delayed", "ready", "reliable"];

/** But a reliable queue is a delayed queue, and more: its classes extend the other's. */
const EXTENDS: Readonly<Record<string, string>> = { reliable: "delayed" };

/** Besides the package's entries. */
const MAX_GROUND_FLOOR_FILES = 5;

/** Known violations. This list only gets shorter: mended ones must leave it. */
const KNOWN: readonly string[] = [];

const src = fileURLToPath(new URL("../../src", import.meta.url));

/** Every source file by its path in src/, the dashboard's page included, with the files that it imports. */
function readImports(): Map<string, string[]> {
  const files = readdirSync(src, { recursive: true, encoding: "utf8" })
    .map((file) => file.split(sep).join("/"))
    .filter((file) => /\.(?:ts|js|css)$/.test(file) && roomOf(file) !== "tools/dashboard/vendor")
    .toSorted();
  return new Map(
    files.map((file) => {
      const specifiers = sourceOf(file).matchAll(
        /(?:^|[\s}*])(?:from|import)\s*\(?\s*"(\.[^"]*)"/g,
      );
      const imported = [...specifiers].map(([, path = ""]) =>
        normalize(join(dirname(file), path))
          .split(sep)
          .join("/"),
      );
      return [file, [...new Set(imported)].toSorted()];
    }),
  );
}

function sourceOf(file: string): string {
  return readFileSync(join(src, file), "utf8");
}

function roomOf(file: string): string {
  const room = dirname(file);
  return room === "." ? file : room;
}

function floorOf(room: string): number {
  return FLOORS.findIndex((rooms) => room in rooms);
}

function isKnownRoom(room: string): boolean {
  return floorOf(room) !== -1 || room in FOUNDATIONS || room in ANNEXES;
}

/** The place that a room belongs to: `lua/ready` belongs to `ready`, and `reliable/group` to `reliable`. */
function placeOf(room: string): string | undefined {
  const [first, second] = room.split("/");
  return PLACES.find((place) => place === first || (first === "lua" && place === second));
}

/** Whether files of one room may import files of another. */
function mayImport(from: string, to: string): boolean {
  if (from === to) return true;
  if (from in FOUNDATIONS) return false;
  if (ANNEXES[from] !== undefined) return ANNEXES[from].imports.some((room) => standsFor(room, to));
  if (to in FOUNDATIONS) return true;
  const [fromPlace, toPlace] = [placeOf(from), placeOf(to)];
  if (EXTENDS[from] === to.split("/")[0]) return true;
  if (fromPlace !== undefined && toPlace !== undefined && fromPlace !== toPlace) return false;
  return floorOf(to) > floorOf(from);
}

function standsFor(listed: string, room: string): boolean {
  return listed === room || (ANNEXES[listed] === undefined && room.startsWith(`${listed}/`));
}

/** What each room imports, by the rooms' names. */
function importsOfRooms(imports: ReadonlyMap<string, readonly string[]>): Map<string, string[]> {
  const rooms = new Map<string, Set<string>>();
  for (const [file, imported] of imports) {
    const room = roomOf(file);
    const others = imported.map(roomOf).filter((other) => other !== room);
    rooms.set(room, new Set([...(rooms.get(room) ?? []), ...others]));
  }
  return new Map([...rooms].map(([room, others]) => [room, [...others]]));
}

/** Groups of files, or of rooms, each of which imports itself through others. */
function findCycles(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const reached = new Map(
    [...imports.keys()].map((start) => {
      const seen = new Set<string>();
      const next = [...(imports.get(start) ?? [])];
      for (let file = next.pop(); file !== undefined; file = next.pop()) {
        if (seen.has(file)) continue;
        seen.add(file);
        next.push(...(imports.get(file) ?? []));
      }
      return [start, seen];
    }),
  );
  const cycles: string[][] = [];
  const done = new Set<string>();
  for (const [file, seen] of reached) {
    if (!seen.has(file) || done.has(file)) continue;
    const cycle = [...seen].filter((other) => reached.get(other)?.has(file)).toSorted();
    for (const other of cycle) done.add(other);
    cycles.push(cycle);
  }
  return cycles;
}

function findViolations(): string[] {
  const imports = readImports();
  const files = [...imports.keys()];
  const doors = Object.values(ENTRIES);
  const groundFloor = readdirSync(src, { withFileTypes: true }).filter(
    (entry) => entry.isFile() && !doors.includes(entry.name),
  );
  return [
    ...[...new Set(files.map(roomOf))]
      .filter((room) => !isKnownRoom(room))
      .map((room) => `${room} has no floor`),
    ...files.flatMap((from) =>
      (imports.get(from) ?? [])
        .filter((to) => !mayImport(roomOf(from), roomOf(to)))
        .map((to) => `${from} imports ${to}`),
    ),
    ...findCycles(imports).map((cycle) => `a cycle: ${cycle.join(", ")}`),
    ...findCycles(importsOfRooms(imports)).map((cycle) => `a cycle of rooms: ${cycle.join(", ")}`),
    ...(groundFloor.length > MAX_GROUND_FLOOR_FILES
      ? [`more than ${MAX_GROUND_FLOOR_FILES} files on the ground floor`]
      : []),
  ];
}

it("every import, file and folder follows the rules, except for known violations", () => {
  const found = findViolations();
  const broken = found.filter((violation) => !KNOWN.includes(violation));
  const mended = KNOWN.filter((violation) => !found.includes(violation));
  expect({ broken, mended }).toEqual({ broken: [], mended: [] });
});

const isTool = (file: string) => file.startsWith("tools/");

it("the tools reach the core through its public names and one door", () => {
  const doors = ["index.ts", "inside.ts", "adapters/testing/index.ts"];
  const others = [...readImports()].flatMap(([from, imported]) =>
    imported
      .filter((to) => isTool(from) && !isTool(to) && !doors.includes(to))
      .map((to) => `${from} imports ${to}`),
  );
  expect(others).toEqual([]);
});

it.each([
  ["index.ts", "errors.ts", true],
  ["client", "client", true],
  ["client", "delayed", true],
  ["delayed", "client", false],
  ["delayed", "ready", false],
  ["reliable", "delayed", true],
  ["reliable", "ready", false],
  ["delayed", "reliable", false],
  ["reliable", "lua/delayed", false],
  ["client", "partitions", true],
  ["partitions", "reliable", true],
  ["partitions", "ready", true],
  ["partitions", "lua/partitions", true],
  ["reliable", "partitions", false],
  ["ready", "lua/ready", true],
  ["ready", "lua/delayed", false],
  ["lua/ready", "lua/delayed", false],
  ["lua/delayed", "lua/fragments", true],
  ["redis", "lua", false],
  ["redis", "time", true],
  ["time", "codecs", false],
  ["codecs", "errors.ts", false],
  ["adapters/redisson", "codecs", true],
  ["adapters/redisson", "errors.ts", false],
  ["index.ts", "adapters/redisson", false],
  ["index.ts", "inside.ts", false],
  ["client", "inside.ts", false],
  ["adapters/nestjs", "inside.ts", false],
  ["tools/doctor/checks", "inside.ts", true],
  ["tools/doctor/checks", "errors.ts", false],
  ["tools/dashboard/page/pages", "tools/dashboard/page/parts", true],
  ["tools/dashboard/page/data", "tools/dashboard/page/parts", false],
  ["tools/dashboard/page/data", "tools/dashboard/readings", false],
  ["tools/dashboard", "tools/dashboard/page", false],
])("whether %s may import %s: %s", (from, to, expected) => {
  expect(mayImport(from, to)).toBe(expected);
});

it("finds cycles of files, long and short", () => {
  const imports = { a: ["b"], b: ["c"], c: ["a", "d"], d: ["d"], e: ["a", "d"] };
  expect(findCycles(new Map(Object.entries(imports)))).toEqual([["a", "b", "c"], ["d"]]);
});
