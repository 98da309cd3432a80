import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// Draws docs/images/demo.svg, the moving picture of the README, from a run of the demo: `npx tsx scripts/demo-picture.ts`.
// The demo's test compares its lines with those of the picture.

const ROOT = fileURLToPath(new URL("../", import.meta.url));

const FONT_SIZE = 13;
const CHARACTER = FONT_SIZE * 0.6;
const ROW = 19;
const MARGIN = 16;

/** How long the last picture stays (s). */
const PAUSE = 6;

/** A line of the terminal, and when it appears (s). */
interface Line {
  readonly at: number;
  readonly text: string;
}

/** The story of the demo: what it prints from the first order on, without what it says of this machine before. */
export function storyOf(stdout: string): string[] {
  const lines = stdout.trimEnd().split("\n");
  return lines.slice(lines.findIndex((line) => /^ *[\d.]+ s /.test(line)));
}

/** A line with `#` in place of what differs from run to run. */
export function shapeOf(line: string): string {
  return line.replaceAll(/\d+(?:\.\d+)?/g, "#").trim();
}

/** The lines of a picture, without the command. */
export function linesOf(svg: string): string[] {
  return Array.from(svg.matchAll(/<text[^>]*>(.*?)<\/text>/g), ([, text = ""]) => text)
    .slice(1)
    .filter((text) => text !== "");
}

function draw(story: readonly string[]): string {
  let at = 0.8;
  const lines: Line[] = [{ at: 0, text: "$ npx delayline demo --once" }];
  for (const text of story) {
    const [, seconds] = /^ *([\d.]+) s /.exec(text) ?? [];
    at = seconds === undefined ? at : 0.8 + Number(seconds);
    lines.push({ at, text });
  }
  const end = at + PAUSE;
  const width =
    Math.ceil(Math.max(...lines.map(({ text }) => text.length)) * CHARACTER) + 2 * MARGIN;
  const height = lines.length * ROW + 2 * MARGIN;
  const frames = lines.map(
    (line, i) => `@keyframes l${i}{0%{opacity:0}${((100 * line.at) / end).toFixed(2)}%{opacity:1}}`,
  );
  const texts = lines.map(({ text }, i) => {
    const y = MARGIN + (i + 0.75) * ROW;
    return `<text x="${MARGIN}" y="${y}" style="animation-name:l${i}"${colour(text)}>${escape(text)}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">`,
    `<style>`,
    `text{font:${FONT_SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d6dbe1;white-space:pre;animation:${end.toFixed(1)}s step-end infinite}`,
    `.dead{fill:#ff7b72}.again{fill:#79c0ff}.paid{fill:#7ee787}`,
    ...frames,
    `@media (prefers-reduced-motion:reduce){text{animation:none}}`,
    `</style>`,
    `<rect width="100%" height="100%" rx="8" fill="#0d1117"/>`,
    ...texts,
    `</svg>\n`,
  ].join("\n");
}

function colour(text: string): string {
  const [kind] = / is dead| is taken again| is paid/.exec(text) ?? [];
  return kind === undefined ? "" : ` class="${kind.split(" ").findLast((word) => word !== "")}"`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const stdout = execFileSync("npx", ["tsx", "src/tools/cli/index.ts", "demo", "--once"], {
    cwd: ROOT,
    encoding: "utf8",
    env: { ...process.env, REDIS_URL: "" },
  });
  writeFileSync(`${ROOT}docs/images/demo.svg`, draw(storyOf(stdout)));
}
