import { execFile } from "node:child_process";
import { cp, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { packed } from "../../scripts/build/stand-ins.ts";
import { InstalledPackage, root, type User } from "../helpers/installed-package.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { uniqueName } from "../helpers/redis.ts";

// The package as users get it, in every kind of project that they have: it compiles, and delivers.

const execute = promisify(execFile);
const here = fileURLToPath(new URL(".", import.meta.url));
const modules = join(root, "node_modules");
const COMPILERS = {
  "TypeScript 7": join(modules, "typescript/bin/tsc"),
  "TypeScript 5": join(modules, "typescript5/bin/tsc"),
};
/** What is tried: every kind, compiler and version of ioredis, though not each with each. */
const PROJECTS: Record<"ioredis" | "ioredis5", [string, keyof typeof COMPILERS][]> = {
  ioredis: [
    ["esm", "TypeScript 7"],
    ["commonjs", "TypeScript 7"],
    ["node16", "TypeScript 7"],
    ["bundler", "TypeScript 7"],
    ["esm", "TypeScript 5"],
    // TypeScript 7 does not know it any more.
    ["node10", "TypeScript 5"],
  ],
  ioredis5: [
    ["esm", "TypeScript 7"],
    ["commonjs", "TypeScript 7"],
    ["bundler", "TypeScript 5"],
    ["node10", "TypeScript 5"],
  ],
};
const REQUIRE =
  "import { createRequire as from } from 'node:module'; const require = from(import.meta.url);";
const DELIVERED = ["42 added", "42 added", "42 added"];

let installed: InstalledPackage;
const users = {} as Record<"ioredis" | "ioredis5", User>;

beforeAll(async () => {
  installed = await InstalledPackage.pack();
  for (const version of ["ioredis", "ioredis5"] as const) {
    const user = (users[version] = await installed.user(version));
    await cp(join(here, "projects"), user.directory, { recursive: true });
    for (const project of ["esm", "commonjs", "node16", "bundler", "node10"]) {
      await cp(join(here, "main.ts"), user.path(`${project}/main.ts`));
    }
  }
});

afterAll(() => installed[Symbol.asyncDispose]());

describe.each(["ioredis", "ioredis5"] as const)("with %s", (version) => {
  test.each(PROJECTS[version])(
    "a project of kind %s compiles with %s, and runs",
    async (...kind) => {
      const [project, compiler] = kind;
      const user = users[version];
      await user.execute(COMPILERS[compiler], "-p", project);
      // A bundler's project is for a bundler to run.
      if (project === "bundler") return;
      expect(await user.run(`${project}/out/main.js`, uniqueName("package"))).toEqual(DELIVERED);
    },
  );

  test.each([
    { format: "esm", minify: false },
    { format: "esm", minify: true },
    { format: "cjs", minify: false },
    { format: "cjs", minify: true },
  ] as const)("esbuild makes one file that runs: $format, minify: $minify", async (options) => {
    const user = users[version];
    const isEsm = options.format === "esm";
    const file = `bundler/out.${isEsm ? "mjs" : "cjs"}`;
    await build({
      entryPoints: [user.path("bundler/main.ts")],
      bundle: true,
      platform: "node",
      ...options,
      outfile: user.path(file),
      // What is CommonJS, as ioredis, calls `require`, which ES modules have to be given.
      ...(isEsm && { banner: { js: REQUIRE } }),
    });
    // Nothing but the one file is there any more.
    await user.move("node_modules", "away");
    try {
      expect(await user.run(file, uniqueName("package"))).toEqual(DELIVERED);
    } finally {
      await user.move("away", "node_modules");
    }
  });

  test("Jest runs it, with no setting", async () => {
    const user = users[version];
    const config = JSON.stringify({ rootDir: user.path("jest") });
    const jest = join(modules, "jest/bin/jest.js");
    const { stdout } = await user.execute(jest, "--ci", "--json", "--config", config);
    expect(JSON.parse(stdout)).toMatchObject({ success: true, numPassedTests: 6 });
  });

  test("Vitest runs it, with no setting", async () => {
    const user = users[version];
    await user.link("vitest");
    const vitest = join(modules, "vitest/vitest.mjs");
    const { stdout } = await user.execute(vitest, "run", "--root", "vitest", "--reporter=json");
    expect(JSON.parse(stdout)).toMatchObject({ success: true, numPassedTests: 1 });
  });
});

test.each(["@types/node", "newest-types-node"] as const)(
  "its types compile with %s, and refuse what is not legal",
  async (types) => {
    const user = await installed.user("ioredis", types);
    await cp(join(here, "projects/esm"), user.path("esm"), { recursive: true });
    await cp(join(here, "types.ts"), user.path("esm/main.ts"));
    for (const compiler of Object.values(COMPILERS)) await user.execute(compiler, "-p", "esm");
  },
);

test("a client of another copy and version of ioredis may be lent", async () => {
  const user = await installed.user("ioredis");
  await symlink(join(modules, "ioredis5"), user.path("node_modules/ioredis5"));
  await cp(join(here, "projects/esm"), user.path("esm"), { recursive: true });
  const program = await readFile(join(here, "main.ts"), "utf8");
  await user.write("esm/main.ts", program.replace('from "ioredis"', 'from "ioredis5"'));
  await user.execute(COMPILERS["TypeScript 7"], "-p", "esm");
  expect(await user.run("esm/out/main.js", uniqueName("package"))).toEqual(DELIVERED);
});

test("clients of the ES modules and of CommonJS share one clock, whichever copy it is of", async () => {
  const user = users.ioredis;
  await cp(join(here, "projects/two-copies.mjs"), user.path("two-copies.mjs"));
  const lived = ["1 at 08:01", "2 at 09:01", "slept until 11:01"];
  expect(await user.run("two-copies.mjs")).toEqual([
    { refused: true, esm: lived, cjs: lived },
    { refused: true, esm: lived, cjs: lived },
  ]);
});

test("`import` and `require` load one copy: a class and its errors are the same in both", async () => {
  const program = `
    const required = { ...require("delayline"), ...require("delayline/redisson"), ...require("delayline/testing") };
    Promise.all([import("delayline"), import("delayline/redisson"), import("delayline/testing")]).then((modules) => {
      const imported = Object.entries(Object.assign({}, ...modules));
      const same = imported.filter(([name, value]) => required[name] === value);
      console.log(JSON.stringify(same.length === imported.length && same.length > 15));
    });`;
  await users.ioredis.write("one-copy.cjs", program);
  expect(await users.ioredis.run("one-copy.cjs")).toBe(true);
});

test.each([
  ["import", "mjs", "const load = (name) => import(name);"],
  ["require", "cjs", "const load = async (name) => require(name);"],
])(
  "%s: what needs a peer that is not installed names it, and the others load",
  async (_, extension, load) => {
    const program = `${load}
    const outcomes = {};
    const names = ["dashboard", "prometheus", "nestjs", "opentelemetry"];
    Promise.all(names.map(async (name) => {
      outcomes[name] = await load("delayline/" + name).then(() => "ok", (error) => error.message);
    })).then(() => console.log(JSON.stringify(outcomes)));`;
    await users.ioredis.write(`peers.${extension}`, program);
    expect(await users.ioredis.run(`peers.${extension}`)).toEqual({
      dashboard: "ok",
      // Its registry is passed in.
      prometheus: "ok",
      nestjs: expect.stringMatching(/^Cannot find (?:module|package) '@nestjs\/common'/),
      opentelemetry: expect.stringMatching(/^Cannot find (?:module|package) '@opentelemetry\/api'/),
    });
  },
);

const PAGE = `
    const server = await serveDashboard({ redis: process.env["REDIS_URL"], port: 0 });
    const [page, session] = await Promise.all(
      ["page/app.js", "api/session"].map(async (path) => await (await fetch(new URL(path, server.url))).text()),
    );
    await server.close();
    console.log(JSON.stringify([page, JSON.parse(session).version]));`;

test.each([
  ["imported", "page.mjs", `import { serveDashboard } from "delayline/dashboard";${PAGE}`],
  [
    "required",
    "page.cjs",
    `const { serveDashboard } = require("delayline/dashboard");(async () => {${PAGE}})();`,
  ],
] as const)("the dashboard serves its page when it is %s, and from a bundle", async (...kind) => {
  const [, file, program] = kind;
  const user = users.ioredis;
  await user.write(file, program);
  const manifest = await readFile(user.path("node_modules/delayline/package.json"), "utf8");
  const app = await readFile(join(root, "src/tools/dashboard/page/app.js"), "utf8");
  const page = packed("page/app.js", app);
  const { version } = JSON.parse(manifest) as { readonly version: string };
  expect(await user.run(file)).toEqual([page, version]);
  const isEsm = file.endsWith(".mjs");
  await build({
    entryPoints: [user.path(file)],
    bundle: true,
    platform: "node",
    format: isEsm ? "esm" : "cjs",
    outfile: user.path(`bundled/${file}`),
    ...(isEsm && { banner: { js: REQUIRE } }),
  });
  await user.move("node_modules", "away");
  try {
    expect(await user.run(`bundled/${file}`)).toEqual([page, version]);
  } finally {
    await user.move("away", "node_modules");
  }
});

test("npx delayline --help runs", async () => {
  const user = users.ioredis;
  await user.linkCommand();
  const args = ["--no-install", "delayline", "--help"];
  const { stdout } = await execute("npx", args, { cwd: user.directory });
  expect(stdout).toContain("usage: delayline <command>");
});

test("the README's first program and first command print what it shows, by copy and paste", async () => {
  const server = await startOwnServer();
  const readme = await readFile(join(root, "README.md"), "utf8");
  const [, program = ""] = /^```js\n(.*?)^```$/ms.exec(readme) ?? [];
  const [, shown = ""] = /^```console\n(.*?)^```$/ms.exec(readme) ?? [];
  const [, file = ""] = /^\/\/ (\S+\.mjs)\b/.exec(program) ?? [];
  // A directory with nothing but the package, ioredis and what they need.
  const user = await installed.user("ioredis");
  await user.linkCommand();
  await user.write(file, program);

  const commands = Array.from(shown.matchAll(/^\$ (.*)$/gm), ([, command = ""]) => command);
  expect(commands).toEqual([`node ${file}`, "npx delayline get order:42"]);
  const env = { ...process.env, REDIS_URL: server.url, npm_config_offline: "true" };
  let printed = "";
  for (const command of commands) {
    // Without stderr, where a command gives hints to people.
    const { stdout } = await execute("sh", ["-c", command], { cwd: user.directory, env });
    printed += `$ ${command}\n${stdout}`;
  }
  expect(withoutInstants(printed)).toBe(withoutInstants(shown));
});

/** The text without what differs from run to run: ids, instants and durations. */
function withoutInstants(text: string): string {
  return text
    .replaceAll(/\d{13}-[\da-f]{32}/g, "<id>")
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/g, "<instant>")
    .replaceAll(/\b1[45] min( \d+ s)?/g, "<a quarter>")
    .replaceAll(/\([\d.]+ m?s ago\)/g, "(<a moment> ago)");
}
