import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import manifest from "../../../package.json" with { type: "json" };
import tsconfig from "../../../tsconfig.json" with { type: "json" };
import { hideInternals } from "../../../scripts/build/hide-internals.ts";
import { COMMAND, ENTRIES } from "../../../scripts/build/entries.ts";
import { packed } from "../../../scripts/build/stand-ins.ts";
import { lineMap } from "../../../scripts/build/line-map.ts";

test("the build, the manifest and the source's paths have the same entries", () => {
  const names = Object.keys(ENTRIES);
  const specifiers = names.map((name) => (name === "index" ? "delayline" : `delayline/${name}`));
  const exported = Object.keys(manifest.exports).filter((path) => path !== "./package.json");
  expect(exported).toEqual(names.map((name) => (name === "index" ? "." : `./${name}`)));
  expect(Object.keys(manifest.typesVersions["*"])).toEqual(names.slice(1));
  expect(manifest.bin).toEqual({ delayline: `./dist/${Object.keys(COMMAND).join()}.js` });
  expect(tsconfig.compilerOptions.paths).toEqual(
    Object.fromEntries(specifiers.map((name, i) => [name, [`./src/${Object.values(ENTRIES)[i]}`]])),
  );
  for (const file of Object.values({ ...ENTRIES, ...COMMAND })) {
    expect(existsSync(new URL(`../../../src/${file}`, import.meta.url))).toBe(true);
  }
});

test("a line map says where each line comes from, once", () => {
  // Line 1: two places of line 1, then line 2; line 2: nothing of ours; line 3: line 4 of the other source.
  const mappings = "AAAA,IAAI,EACN;;ACEF";
  const map = JSON.parse(lineMap("x.js", { sources: ["a.ts", "b.ts"], mappings })) as object;
  expect(map).toEqual({
    version: 3,
    file: "x.js",
    sources: ["a.ts", "b.ts"],
    names: [],
    mappings: "AAAA,MACF;;ACEF",
  });
});

test("the page is packed without comments, indentation and long local names, and says the same", () => {
  const before = `// Gone.
/* Gone, too. */
const url = "https://example.com"; // Gone.
const text = \`
  // kept
  /* kept */
  <\${Tag} a="1"><//>\`;
`;
  expect(packed("page/app.js", before)).toBe(
    'const url="https://example.com";const text=`\n// kept\n/* kept */\n<${Tag} a="1"><//>`;\n',
  );
  const named = 'import { long } from "./a.js";\nexport const longer = (longest) => long(longest);';
  expect(packed("page/app.js", named)).toMatch(
    /^import\{long as (\w)\}from"\.\/a\.js";export const longer=(\w)=>\1\(\2\);\n$/,
  );
  expect(packed("page/a.css", '/* Gone. */\na::after { content: "/* kept */"; }\n')).toBe(
    'a::after{content:"/* kept */"}\n',
  );
  expect(packed("page/index.html", "<!-- kept -->")).toBe("<!-- kept -->");
});

test("declarations have no internal members; internal constructors cannot be called", () => {
  const before = `
export declare class A extends B {
    /** @internal Use \`open\`. */
    constructor(queue: Queue, on: (x: string) => void, rest: {
        readonly group: string;
    });
    /** Public. */
    size(options?: CallOptions): Promise<number>;
    /** @internal */
    stop(): void;
}
export declare class C {
    /** @internal */
    protected constructor(queue: Queue);
    /** Public. */
    constructor(url: string);
}`;
  expect(hideInternals(before)).toBe(`
export declare class A extends B {
    /** @internal Use \`open\`. */
    constructor(internal: never);
    /** Public. */
    size(options?: CallOptions): Promise<number>;
}
export declare class C {
    /** @internal */
    protected constructor(internal: never);
    /** Public. */
    constructor(url: string);
}`);
});
