import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { contents, linkOnSite } from "../../../scripts/site/contents.ts";
import { deadLinks } from "../../../scripts/site/dead-links.ts";

// What `npm run site` decides itself. The gate builds the site, which VitePress and TypeDoc do.

test("the contents are the sections of docs/README.md, with what each page is for", () => {
  const sections = contents();
  expect(sections.length).toBeGreaterThan(4);
  for (const { title, entries } of sections)
    expect([title, entries.length > 1]).toEqual([title, true]);
  const entries = sections.flatMap((section) => section.entries);
  expect(entries).toContainEqual({
    title: "delayed messages",
    path: "docs/guide/delayed-messages.md",
    about: "delay, cancel, reschedule, deliver now",
  });
  // A page that the package does not hold.
  expect(entries.map(({ path }) => path)).toContain("docs/benchmarks.md");
});

const ON_GITHUB = "https://github.com/delayline/delayline/blob/main";

test.each([
  ["docs/guide/flow.md", "only-if.md#limits", "only-if.md#limits"],
  ["docs/guide/flow.md", "#a-rate", "#a-rate"],
  ["docs/guide/flow.md", "../promises.md", "../promises.md"],
  ["docs/guide/flow.md", `${ON_GITHUB}/docs/benchmarks.md#order`, "../benchmarks.md#order"],
  ["docs/guide/flow.md", "../../CHANGELOG.md", "../../CHANGELOG.md"],
  ["docs/recipes/webhooks.md", "../../examples/a.ts", `${ON_GITHUB}/examples/a.ts`],
  ["README.md", "LICENSE", `${ON_GITHUB}/LICENSE`],
  ["README.md", "https://example.com/a.md", "https://example.com/a.md"],
  ["docs/guide/start.md", "../../README.md#delayline", "../../index.md#delayline"],
  ["docs/guide/start.md", "../recipes/README.md", "../recipes/README.md"],
])("on the site, %s links by %s to %s", (page, link, expected) => {
  expect(linkOnSite(page, link, "index.md")).toBe(expected);
});

test("a link of the site is dead without its file, or without its anchor", () => {
  const site = mkdtempSync(join(tmpdir(), "site-"));
  onTestFinished(() => rmSync(site, { recursive: true }));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(site, path)), { recursive: true });
    writeFileSync(join(site, path), text);
  };
  write(
    "index.html",
    '<h1 id="top"></h1> <a href="/docs/a.html#one"> <a href="https://x.example/">',
  );
  write(
    "docs/a.html",
    '<h1 id="one"></h1> <a href="./../#top"> <a href="/"> <img src="/logo.svg">',
  );
  write("llms.txt", "- [a](docs/a.md)\n");
  write("docs/a.md", "[home](../index.html) `[code](gone.md)`\n```\n[code](gone.md)\n```\n");
  write("logo.svg", "");
  expect(deadLinks(site)).toEqual([]);

  write("index.html", '<a href="#top"> <a href="/docs/a.html#two"> <a href="/docs/b.html">');
  write("llms.txt", "- [b](docs/b.md)\n");
  rmSync(join(site, "logo.svg"));
  expect(deadLinks(site).toSorted()).toEqual([
    "docs/a.html: ./../#top",
    "docs/a.html: /logo.svg",
    "index.html: #top",
    "index.html: /docs/a.html#two",
    "index.html: /docs/b.html",
    "llms.txt: docs/b.md",
  ]);
});
