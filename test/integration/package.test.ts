import { readFile, stat } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as source from "../../src/index.ts";
import { InstalledPackage, type User } from "../helpers/installed-package.ts";
import { redisUrl, uniqueName } from "../helpers/redis.ts";

// The package as users get it: built, packed, installed beside their code, and imported by its name.

let installed: InstalledPackage;
let user: User;

beforeAll(async () => {
  installed = await InstalledPackage.pack();
  user = await installed.user(process.env["IOREDIS"] === "5" ? "ioredis5" : "ioredis");
});

afterAll(() => installed[Symbol.asyncDispose]());

/** Runs a user's program. Returns its output, parsed as JSON. */
async function runProgram(file: string, text: string, ...args: string[]): Promise<unknown> {
  await user.write(file, text);
  return await user.run(file, ...args);
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
    const program = `
      const delayline = require("delayline");
      const exported = Object.keys(delayline).filter((name) => name !== "__esModule");
      console.log(JSON.stringify(exported.sort()));`;
    expect(await runProgram("require.cjs", program)).toEqual(names);
  });

  test("has no other entries than its exports", async () => {
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

  test("holds no files that only this repository needs", async () => {
    const index = await readFile(user.path("node_modules/delayline/dist/index.js"), "utf8");
    const types = await readFile(user.path("node_modules/delayline/dist/index.d.ts"), "utf8");
    // Imports name existing files: `.js`, not `.ts`.
    expect(index).not.toMatch(/from ".*\.ts"/);
    expect(types).toContain("export { Delayline");
  });

  test("holds everything that its README links to", async () => {
    const readme = await readFile(user.path("node_modules/delayline/README.md"), "utf8");
    const links = Array.from(readme.matchAll(/\]\(([^)#\s]+)/g), ([, link = ""]) => link);
    const relative = links.filter((link) => !/^[a-z]+:/.test(link));
    expect(relative.length).toBeGreaterThan(5);
    const missing: string[] = [];
    for (const link of relative) {
      await stat(user.path(`node_modules/delayline/${link}`)).catch(() => missing.push(link));
    }
    expect(missing).toEqual([]);
  });
});
