import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as source from "../../src/index.ts";
import { redisUrl, uniqueName } from "../helpers/redis.ts";

// The package as users get it: built, installed beside their code, and imported by its name.

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));

let home: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "delayline-package-"));
  const installed = join(home, "node_modules", "delayline");
  await mkdir(installed, { recursive: true });
  await cp(join(root, "package.json"), join(installed, "package.json"));
  // Built elsewhere than in `dist`, which others may be building or using meanwhile.
  const tsc = join(root, "node_modules", ".bin", "tsc");
  await run(tsc, ["-p", "src", "--outDir", join(installed, "dist")], { cwd: root });
  const { dependencies } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  for (const name of Object.keys(dependencies)) {
    await symlink(join(root, "node_modules", name), join(home, "node_modules", name));
  }
});

afterAll(async () => {
  await rm(home, { recursive: true, force: true });
});

/** Runs a program of the user's; answers what it prints, as JSON. */
async function runProgram(file: string, text: string, ...args: string[]): Promise<unknown> {
  await writeFile(join(home, file), text);
  const { stdout, stderr } = await run(process.execPath, [join(home, file), ...args]);
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

const names = Object.keys(source).toSorted();

describe("the built package", () => {
  test("is imported by its name", async () => {
    const program = `
      import * as delayline from "delayline";
      console.log(JSON.stringify(Object.keys(delayline).sort()));`;
    expect(await runProgram("import.mjs", program)).toEqual(names);
  });

  test("is required by its name", async () => {
    // Node 20.19 and later can require ES modules, and warns of it in 20 only.
    const program = `
      process.removeAllListeners("warning");
      const delayline = require("delayline");
      const exported = Object.keys(delayline).filter((name) => name !== "__esModule");
      console.log(JSON.stringify(exported.sort()));`;
    expect(await runProgram("require.cjs", program)).toEqual(names);
  });

  test("has no other entry than those that it exports", async () => {
    const program = `
      const outcomes = [];
      for (const path of ["redisson", "testing", "package.json", "dist/index.js", "src/index.ts", "codec"]) {
        const options = path.endsWith(".json") ? { with: { type: "json" } } : {};
        outcomes.push(await import("delayline/" + path, options).then(() => "ok", ({ code }) => code));
      }
      console.log(JSON.stringify(outcomes));`;
    const refused = "ERR_PACKAGE_PATH_NOT_EXPORTED";
    const json = await runProgram(
      "entries.mjs",
      `process.removeAllListeners("warning");${program}`,
    );
    expect(json).toEqual(["ok", "ok", "ok", refused, refused, refused]);
  });

  test("works", async () => {
    const program = `
      import { Delayline } from "delayline";
      const [redis, name] = process.argv.slice(2);
      const line = new Delayline({ redis });
      await line.getDelayedQueue(name).offer({ order: 42 }, 10);
      const payload = await line.getBlockingQueue(name).take();
      await line.close();
      console.log(JSON.stringify(payload));`;
    const payload = await runProgram("work.mjs", program, redisUrl(), uniqueName("package"));
    expect(payload).toEqual({ order: 42 });
  });

  test("holds nothing that only this repository has", async () => {
    const index = await readFile(join(home, "node_modules/delayline/dist/index.js"), "utf8");
    const types = await readFile(join(home, "node_modules/delayline/dist/index.d.ts"), "utf8");
    // Imports name the files that are there: `.js`, not `.ts`.
    expect(index).not.toMatch(/from ".*\.ts"/);
    expect(types).toContain("export { Delayline");
  });
});
