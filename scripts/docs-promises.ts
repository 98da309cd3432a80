import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// The table of behaviour and tests in CONTRIBUTING.md, from that of the promises.

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** What to run after a change of a behaviour. */
export function behaviours(): string {
  const page = readFileSync(`${ROOT}docs/promises.md`, "utf8");
  const rows = page
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .filter(([, , , tests]) => tests?.startsWith("`"))
    .map(([, promise = "", , tests = ""]) => {
      const files = Array.from(tests.matchAll(/`([^`]+)`/g), ([, name = ""]) => fileOf(name));
      // The page is in docs/.
      return `| ${promise.replaceAll("](", "](docs/")} | ${files.join(", ")} |`;
    });
  return ["| behaviour | tests |", "| - | - |", ...rows].join("\n");
}

/** A test, or a folder of tests, as `npm run test:all --` takes it. */
function fileOf(name: string): string {
  const kinds = [".test.ts", ".long.test.ts", ""];
  const file = kinds.map((kind) => `test/${name}${kind}`).find((path) => existsSync(ROOT + path));
  if (file === undefined)
    throw new Error(`docs/promises.md names ${name}, and there is no such test`);
  return `\`${file}\``;
}
