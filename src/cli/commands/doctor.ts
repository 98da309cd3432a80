import { escapeControl } from "../../inspect/escape-control.ts";
import { diagnose, type Finding } from "../../doctor/diagnose.ts";
import { defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";
import { formatFacts } from "../printing/table.ts";
import { wrap } from "../printing/wrap.ts";

export const doctor = defineCommand({
  usage: "doctor [queue]...",
  help: `Looks at Redis and at the queues, all of them unless some are named, and prints what is not
as it should be: what, why that matters, and what repairs it. Changes nothing in the database.
Exit code 1 if there are errors, 3 if Redis cannot be reached.`,
  words: [0, 1000],
  options: {},
  optionHelp: {},
  async run({ addresses, output, isJson, signal }, names) {
    const queues = names.length > 0 ? { queues: names } : {};
    const counts = { error: 0, warning: 0, notice: 0 };
    const errors: string[] = [];
    let isReached = true;
    output.progress(`Looking at ${addresses.shown} ...`);
    for await (const finding of diagnose({ redis: addresses.redis, ...queues, signal })) {
      counts[finding.level]++;
      if (finding.level === "error") errors.push(titleOf(finding));
      if (finding.check === "reachable" && finding.level === "error") isReached = false;
      if (isJson) await output.json(finding);
      else await output.print(...linesOf(finding, output.hasColours), "");
    }
    const { error, warning, notice } = counts;
    const sum = [`${error} error(s)`, `${warning} warning(s)`, `${notice} notice(s)`].join(", ");
    output.say(error + warning + notice === 0 ? "Nothing was found." : sum);
    // They may have left the screen.
    if (error > 0 && !isJson) output.say(`Errors: ${shorten(errors)}`);
    if (!isReached) return EXIT.redis;
    return error > 0 ? EXIT.nothing : EXIT.done;
  },
});

function titleOf({ check, queue }: Finding): string {
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
    ["repair", repair],
  ]);
  return [`${shown}: ${titleOf(finding)}`, ...facts.flatMap((line) => wrap(line, FACT_INDENT))];
}

const COLOURS = { error: "\u001b[31m", warning: "\u001b[33m", notice: "\u001b[36m" } as const;

/** Two spaces, `repair`, and two more. */
const FACT_INDENT = 10;

/** Errors that are told once more at the end. */
const MOST = 10;
