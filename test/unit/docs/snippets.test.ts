import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { allPages, ROOT, snippetsOf, type Snippet } from "./pages.ts";
import { PRELUDE } from "./prelude.ts";

/*
 * Every block of TypeScript in the README and in docs/ compiles against src/, each as a module of its own. prelude.ts
 * declares the names that a block does not. The blocks of docs/recipes are parts of programs: recipes.test.ts.
 */

const snippets = allPages()
  .filter(({ path }) => path === "README.md" || path.startsWith("docs/"))
  .filter(({ path }) => !path.startsWith("docs/recipes/"))
  .flatMap((page) => snippetsOf(page, "ts"));

// Inside the repository, where the snippets find the installed packages. Ignored by git.
const DIRECTORY = `${ROOT}.cache/docs-snippets-${process.pid}`;

/** The compiler's errors, by file name. */
const complaints = new Map<string, string[]>();

beforeAll(async () => {
  await mkdir(DIRECTORY, { recursive: true });
  try {
    await Promise.all(
      snippets.map((snippet) => writeFile(`${DIRECTORY}/${fileOf(snippet)}`, moduleOf(snippet))),
    );
    await writeFile(`${DIRECTORY}/prelude.d.ts`, PRELUDE);
    await writeFile(`${DIRECTORY}/tsconfig.json`, JSON.stringify(CONFIG));
    const tsc = `${ROOT}node_modules/.bin/tsc`;
    const output = await promisify(execFile)(tsc, ["-p", DIRECTORY, "--pretty", "false"]).then(
      () => "",
      ({ stdout }: { readonly stdout: string }) => stdout,
    );
    for (const line of output.split("\n").filter((text) => text.includes("error TS"))) {
      const file = /([\w.-]+\.mts)\(/.exec(line)?.[1] ?? "elsewhere";
      complaints.set(file, [...(complaints.get(file) ?? []), line.replace(/^.*?\(/, "(")]);
    }
  } finally {
    await rm(DIRECTORY, { recursive: true, force: true });
  }
});

test("there are snippets, and the compiler complains of nothing else", () => {
  expect(snippets.length).toBeGreaterThan(40);
  expect(complaints.get("elsewhere")).toBeUndefined();
});

test.each(snippets)("$page, line $line", (snippet) => {
  expect(complaints.get(fileOf(snippet)) ?? []).toEqual([]);
});

const CONFIG = {
  extends: "../../tsconfig.json",
  compilerOptions: {
    noUnusedLocals: false,
    noUnusedParameters: false,
    // Nest's decorators, which apply to parameters, too.
    experimentalDecorators: true,
    paths: {
      delayline: ["../../src/index.ts"],
      "delayline/events": ["../../src/events.ts"],
      "delayline/dashboard": ["../../src/tools/dashboard/index.ts"],
      "delayline/nestjs": ["../../src/adapters/nestjs/index.ts"],
      "delayline/opentelemetry": ["../../src/adapters/opentelemetry/index.ts"],
      "delayline/prometheus": ["../../src/adapters/prometheus/index.ts"],
      "delayline/redisson": ["../../src/adapters/redisson/index.ts"],
      "delayline/testing": ["../../src/adapters/testing/index.ts"],
    },
  },
  include: ["*.mts", "*.d.ts"],
};

/** A file name that names the page. */
function fileOf({ page, line }: Snippet): string {
  return `${page.replace(/\.md$/, "").replaceAll("/", "-")}-${line}.mts`;
}

function moduleOf({ code }: Snippet): string {
  return `${code}\nexport {};\n`;
}
