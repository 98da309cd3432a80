import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { deadLinks } from "./dead-links.ts";
import { ROOT } from "./contents.ts";

// Builds the site into .cache/site: the API reference from the source (docs/reference, which is not committed), then
// every page. Fails if a link of the site leads nowhere.

const SITE = `${ROOT}.cache/site`;
const TOOLS = `${ROOT}scripts/site/node_modules/.bin`;

run("npm", "ci", "--prefix", "scripts/site");
run(`${TOOLS}/typedoc`, "--options", "scripts/site/typedoc.json");
rmSync(SITE, { recursive: true, force: true });
run(`${TOOLS}/vitepress`, "build", "scripts/site");

const dead = deadLinks(SITE);
if (dead.length > 0) {
  console.error(`Links that lead nowhere:\n${dead.join("\n")}`);
  process.exitCode = 1;
} else {
  console.log(
    `The site is in ${SITE}. To look at it: scripts/site/node_modules/.bin/vitepress preview scripts/site`,
  );
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { cwd: ROOT, stdio: "inherit" });
}
