import { defineConfig } from "vitepress";
import { anchorOf, contents, INDEX, linkOnSite, ROOT } from "../contents.ts";
import { writeForMachines } from "../for-machines.ts";

// The site has the pages of the repository at their paths, with the README in front.

const FRONT = "index.md";

export default defineConfig({
  title: "Delayline",
  description: "Delayed queues on Redis for Node.js",
  srcDir: ROOT,
  outDir: `${ROOT}.cache/site`,
  cacheDir: `${ROOT}.cache/vitepress`,
  srcExclude: ["{examples,scripts,src,test}/**"],
  rewrites: { "README.md": FRONT },
  // The index of the search.
  vite: { build: { chunkSizeWarningLimit: 2_000 } },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      { text: "All pages", link: `/${INDEX}` },
      { text: "API", link: "/docs/reference/README.md" },
      { text: "Changelog", link: "/CHANGELOG.md" },
    ],
    sidebar: contents().map(({ title, entries }) => ({
      text: title,
      collapsed: false,
      items: entries.map(({ title: text, path }) => ({ text, link: `/${path}` })),
    })),
    socialLinks: [{ icon: "github", link: "https://github.com/delayline/delayline" }],
  },
  markdown: {
    anchor: { slugify: anchorOf },
    config(md) {
      // Pages hold no HTML but comments. A line that begins with `<queue>` goes on with the code of the line before.
      md.block.ruler.disable("html_block");
      md.core.ruler.push("links", ({ tokens, env }) => {
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const link = token.attrGet("href");
          if (link !== null) token.attrSet("href", linkOnSite(env.relativePath, link, FRONT));
        }
      });
    },
  },
  async buildEnd({ outDir, pages }) {
    await writeForMachines(outDir, pages);
  },
});
