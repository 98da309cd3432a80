import { existsSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as source from "../../src/index.ts";
import { InstalledPackage, root, type User } from "../helpers/installed-package.ts";
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

/** The package's files, by their paths in it, with their sizes in bytes. */
async function packed(): Promise<{ readonly name: string; readonly size: number }[]> {
  const home = user.path("node_modules/delayline");
  const entries = await readdir(home, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return await Promise.all(
    files.map(async ({ parentPath, name }) => {
      const path = join(parentPath, name);
      return { name: path.slice(home.length + 1), size: (await stat(path)).size };
    }),
  );
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
    expect(types).toMatch(/^export \{.*\bDelayline\b/m);
    const own = /^(?:src|test|scripts|node_modules|docs\/reference)\/|tsconfig/;
    expect((await packed()).map(({ name }) => name).filter((name) => own.test(name))).toEqual([]);
  });

  test("has at most 160 files, and 4.1 MB", async () => {
    const files = await packed();
    expect(files.length).toBeLessThanOrEqual(160);
    expect(files.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(4_100_000);
  });

  test("loads at most five of its own files for the client", async () => {
    const loaded = new Set(["dist/index.js"]);
    for (const name of loaded) {
      const code = await readFile(user.path(`node_modules/delayline/${name}`), "utf8");
      for (const [, file = ""] of code.matchAll(/ from "\.\/([^"]+)"/g)) loaded.add(`dist/${file}`);
    }
    expect(loaded.size).toBeGreaterThan(1);
    expect(loaded.size).toBeLessThanOrEqual(5);
  });

  test("each line leads into `src`, and each file of `src` is there once", async () => {
    const maps = (await packed()).filter(({ name }) => name.endsWith(".js.map"));
    const sources: string[] = [];
    for (const { name } of maps) {
      const text = await readFile(user.path(`node_modules/delayline/${name}`), "utf8");
      const map = JSON.parse(text) as { sources: string[]; mappings: string };
      expect(map.mappings).not.toBe("");
      sources.push(...map.sources.map((path) => join(dirname(name), path)));
    }
    expect(sources.length).toBeGreaterThan(200);
    expect(new Set(sources).size).toBe(sources.length);
    const ours = sources.filter((path) => path.startsWith("src/"));
    expect(ours.filter((path) => existsSync(join(root, path)))).toEqual(sources);
  });

  test("a stack trace names lines of `src`", async () => {
    const program = await user.write(
      "trace.mjs",
      `import { Delayline } from "delayline";
      try { new Delayline({ redis: "redis://localhost", bogus: 1 }); }
      catch (error) { console.log(error.stack); }`,
    );
    const { stdout } = await user.execute("--enable-source-maps", program);
    const places = [...stdout.matchAll(/delayline\/(src\/[\w/.-]+):(\d+)/g)];
    expect(places.map(([, path]) => path)).toContain("src/client/delayline.ts");
    const [, file = "", line = ""] = places[0] ?? [];
    const lines = (await readFile(join(root, file), "utf8")).split("\n");
    expect(lines[Number(line) - 1]).toContain("throw new TypeError(");
  });

  test("holds everything that its pages link to", async () => {
    const pages = (await packed()).filter(({ name }) => name.endsWith(".md"));
    expect(pages.length).toBeGreaterThan(30);
    const missing: string[] = [];
    for (const { name } of pages) {
      const text = await readFile(user.path(`node_modules/delayline/${name}`), "utf8");
      // Pictures are shown from the repository.
      const links = text.matchAll(/(?<!!\[[^\]]*)\]\(([^)#\s]+)/g);
      for (const [, link = ""] of links) {
        if (/^[a-z]+:/.test(link)) continue;
        const path = join(dirname(name), link);
        await stat(user.path(`node_modules/delayline/${path}`)).catch(() =>
          missing.push(`${name} links to ${path}`),
        );
      }
    }
    expect(missing).toEqual([]);
  });
});
