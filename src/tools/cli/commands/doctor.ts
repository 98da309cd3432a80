import { diagnose, type Finding } from "../../doctor/diagnose.ts";
import { escapeControl } from "../../inspect/text.ts";
import { formatCount, formatFacts, wrap } from "../session/output.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";

export const doctor = defineCommand({
  usage: "doctor [queue]...",
  help: `Examines Redis and the queues, all of them unless you name some. Prints what is wrong, why
it matters, and how to repair it. Changes nothing in the database.
Its redis-cli commands read the password from REDISCLI_AUTH.
Exit code 1 if it finds errors, 3 if it cannot reach Redis.`,
  words: [0, 1000],
  options: {},
  optionHelp: {},
  async run({ addresses, output, isJson, signal, commandLine }, names) {
    const queues = names.length > 0 ? { queues: names } : {};
    const counts = { error: 0, warning: 0, notice: 0 };
    const errors: string[] = [];
    let isReached = true;
    output.progress(`Examining ${addresses.shown} ...`);
    const options = { redis: addresses.redis, ...queues, commandLine, signal };
    for await (const finding of diagnose(options)) {
      counts[finding.level]++;
      if (finding.level === "error") errors.push(titleOf(finding));
      if (UNREACHED.has(finding.check)) isReached = false;
      if (isJson) await output.json(finding);
      else await output.print(...linesOf(finding, output.hasColours), "");
    }
    const { error, warning, notice } = counts;
    const sum = [
      formatCount(error, "error"),
      formatCount(warning, "warning"),
      formatCount(notice, "notice"),
    ].join(", ");
    output.say(error + warning + notice === 0 ? "Found nothing wrong." : `Found ${sum}.`);
    // The findings themselves may have scrolled off the screen.
    if (error > 0 && !isJson) output.say(`Errors: ${shorten(errors)}`);
    if (!isReached) return EXIT.redis;
    return error > 0 ? EXIT.nothing : EXIT.done;
  },
});

const UNREACHED: ReadonlySet<Finding["check"]> = new Set(["reachable", "usable"]);

function titleOf({ check, queue, queues }: Finding): string {
  if (queues !== undefined) return `${check} in ${formatCount(queues.length, "queue")}`;
  return queue === undefined ? check : `${check} in queue "${escapeControl(queue)}"`;
}

function shorten(titles: readonly string[]): string {
  const rest = titles.length - MOST;
  return [...titles.slice(0, MOST), ...(rest > 0 ? [`${rest} more`] : [])].join("; ");
}

function linesOf(finding: Finding, hasColours: boolean): string[] {
  const { level, what, why, repair } = finding;
  const shown = hasColours ? `${COLOURS[level]}${level}\u001b[0m` : level;
  const facts = formatFacts([
    ["what", what],
    ["why", why],
    ["repair", ""],
  ]);
  const [first = "", ...others] = repairLines(repair);
  return [
    `${shown}: ${titleOf(finding)}`,
    ...facts.slice(0, -1).flatMap((line) => wrap(line, FACT_INDENT)),
    `${facts.at(-1)}${first.slice("  repair".length)}`,
    ...others,
  ];
}

/** The prose of a repair, wrapped, and each of its commands whole on a line of its own, so that it can be pasted. */
function repairLines(repair: string): string[] {
  return repair.split(COMMAND).flatMap((part, i) => {
    const indent = " ".repeat(FACT_INDENT);
    if (i % 2 === 1)
      return [`${repair.startsWith("`") ? "" : "  "}${indent}${escapeControl(part)}`];
    const prose = escapeControl(part.replace(/^[;,]? +/, "").trimEnd());
    return prose === "" ? [] : wrap(indent + prose, FACT_INDENT);
  });
}

/** A command in backticks. Its quoted words may hold backticks as well. */
const COMMAND = /`((?:npx|redis-cli|await|for) (?:\\.|'[^']*'|[^'`\\])*)`/;

const COLOURS = { error: "\u001b[31m", warning: "\u001b[33m", notice: "\u001b[36m" } as const;

/** Two spaces, `repair`, and two more. */
const FACT_INDENT = 10;

/** How many errors the last line names. */
const MOST = 10;
