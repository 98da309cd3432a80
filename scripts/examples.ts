/**
 * Runs the examples one after the other, as a user would.
 *
 *   npm run examples                   all
 *   npm run examples -- quick-start    those whose names contain this
 *
 * An example passes if it ends with exit code 0 within the time limit. The last line counts them.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { putServerOnPath } from "./server/on-path.ts";

/** Milliseconds that one example may take. It needs a few seconds, and more on a busy machine. */
const TIME_LIMIT = 60_000;

/** Node.js 24 runs TypeScript and `await using` without a loader. */
const LOADER = Number(process.versions.node.split(".")[0]) >= 24 ? [] : ["--import", "tsx"];

const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs one example; returns why it failed, or undefined. */
async function run(file: string): Promise<string | undefined> {
  const child = spawn(process.execPath, [...LOADER, `examples/${file}`], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    // A process group of its own, so that killing an example that hangs kills all its processes.
    detached: true,
  });
  const end = (): void => {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  };
  const onInterrupt = (): void => {
    end();
    process.exit(130);
  };
  let isOverdue = false;
  const timer = setTimeout(() => {
    isOverdue = true;
    end();
  }, TIME_LIMIT);
  process.once("SIGINT", onInterrupt);
  const [code, signal] = await once(child, "exit");
  process.off("SIGINT", onInterrupt);
  clearTimeout(timer);
  if (isOverdue) return `not finished after ${TIME_LIMIT / 1000} s`;
  return code === 0 ? undefined : String(signal ?? `exit code ${code}`);
}

const wanted = process.argv[2] ?? "";
const files = (await readdir(new URL("../examples", import.meta.url), { recursive: true }))
  .filter((file) => file.endsWith(".ts") && file.includes(wanted))
  .toSorted();

if (!process.env["REDIS_URL"]) await putServerOnPath();
const results: { readonly file: string; readonly failure: string | undefined }[] = [];
for (const file of files) {
  console.log(`\n--- examples/${file}`);
  const failure = await run(file);
  if (failure !== undefined) console.log(`failed: ${failure}`);
  results.push({ file, failure });
}

const failed = results.filter(({ failure }) => failure !== undefined);
console.log("");
for (const { file, failure } of results) {
  console.log(`${failure === undefined ? "pass" : "FAIL"}  ${file}  ${failure ?? ""}`.trimEnd());
}
console.log(`${results.length - failed.length} passed, ${failed.length} failed`);
if (failed.length > 0 || results.length === 0) process.exitCode = 1;
