import { diagnose, type Finding } from "../../doctor/diagnose.ts";
import { escapeControl } from "../../view/text.ts";
import { sleepForNetwork } from "../../../inside.ts";
import { parseDuration } from "../session/arguments.ts";
import { formatPairs, wrap } from "../session/output.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT, type ExitCode } from "../session/exit.ts";
import type { Session } from "../session/session.ts";
import { formatInstant } from "../../view/instants.ts";
import { countBySeverity } from "../../view/severity.ts";
import { formatCount } from "../../view/words.js";

export const doctor = defineCommand({
  usage: "doctor [queue]... [--watch]",
  help: `Examines Redis and the queues, all of them unless you name some. Prints what is wrong, why
it matters, and how to repair it. Changes nothing in the database.
Its redis-cli commands read the password from REDISCLI_AUTH.
Exit code 1 if it finds errors, 3 if it cannot reach Redis; with --watch 130, after Ctrl-C.`,
  words: [0, 1000],
  options: {
    watch: { type: "boolean", short: "w" },
    interval: { type: "string", value: "<duration>" },
  },
  optionHelp: {
    watch: "repeats until Ctrl-C, and prints what is new and what is over",
    interval: "repeats this often, with --watch; defaults to 30s",
  },
  async run(session, names, { watch: isWatching = false, interval = "30s" }) {
    const pause = Math.max(1000, parseDuration("--interval", interval));
    if (isWatching) return await watch(session, names, pause);
    const { output, isJson } = session;
    const findings: Finding[] = [];
    for await (const finding of examine(session, names)) {
      findings.push(finding);
      await print(session, finding);
    }
    output.say(summaryOf(findings));
    const errors = findings.filter(({ level }) => level === "error");
    // The findings themselves may have scrolled off the screen.
    if (errors.length > 0 && !isJson) output.say(`Errors: ${shorten(errors.map(titleOf))}`);
    if (findings.some(({ check }) => UNREACHED.has(check))) return EXIT.redis;
    return errors.length > 0 ? EXIT.nothing : EXIT.done;
  },
});

/** Examines again and again until the signal is aborted. Prints the findings that are new, and those that are over. */
async function watch(session: Session, names: readonly string[], pause: number): Promise<ExitCode> {
  const { output, isJson, signal } = session;
  const known = new Map<string, Title>();
  for (let isFirst = true; ; isFirst = false) {
    const all: Finding[] = [];
    const before = new Set(known.keys());
    for await (const finding of examine(session, names)) {
      all.push(finding);
      // The same trouble of many queues is one finding, and new for some of them.
      const titles = titlesOf(finding).map((title) => [JSON.stringify(title), title] as const);
      for (const [identity, title] of titles) known.set(identity, title);
      const isNew = titles.some(([identity]) => !before.has(identity));
      if (isNew) await print(session, finding, "new");
    }
    // What could not be asked is not over.
    const isReached = all.every(({ check }) => !UNREACHED.has(check));
    const now = new Set(all.flatMap(titlesOf).map((title) => JSON.stringify(title)));
    for (const [identity, title] of known) {
      if (!isReached || now.has(identity)) continue;
      known.delete(identity);
      await printOver(session, title);
    }
    if (isFirst && !isJson) output.say(`${summaryOf(all)} Watching until Ctrl-C.`);
    await sleepForNetwork(pause, signal);
    signal.throwIfAborted();
  }
}

async function* examine(
  { addresses, output, signal, commandLine }: Session,
  names: readonly string[],
): AsyncGenerator<Finding, void, void> {
  output.progress(`Examining ${addresses.shown} ...`);
  const queues = names.length > 0 ? { queues: names } : {};
  yield* diagnose({ redis: addresses.redis, ...queues, commandLine, signal });
  output.progress("");
}

/** Prints a finding; with `change` after the time. */
async function print({ output, isJson }: Session, finding: Finding, change?: "new"): Promise<void> {
  const at = Date.now();
  if (isJson) {
    await output.json(change === undefined ? finding : { change, at, ...finding });
    return;
  }
  const time = change === undefined ? "" : `${formatInstant(at)}  `;
  const [head = "", ...lines] = linesOf(finding, output.hasColours);
  await output.print(`${time}${head}`, ...lines, "");
}

async function printOver({ output, isJson }: Session, title: Title): Promise<void> {
  const at = Date.now();
  if (isJson) await output.json({ change: "over", at, ...title });
  else await output.print(`${formatInstant(at)}  over: ${title.level}: ${titleOf(title)}`, "");
}

/** What stays the same while a finding lasts: its numbers change. */
type Title = Pick<Finding, "level" | "check" | "queue">;

/** One for each queue. */
function titlesOf({ level, check, queue, queues = [] }: Finding): Title[] {
  return queues.length > 0
    ? queues.map((one) => ({ level, check, queue: one }))
    : [{ level, check, queue }];
}

function summaryOf(findings: readonly Finding[]): string {
  return `Found ${countBySeverity(findings) || "nothing wrong"}.`;
}

const UNREACHED: ReadonlySet<Finding["check"]> = new Set(["reachable", "usable"]);

function titleOf({ check, queue, queues }: Pick<Finding, "check" | "queue" | "queues">): string {
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
  const pairs = formatPairs([
    ["what", what],
    ["why", why],
    ["repair", ""],
  ]);
  const [first = "", ...others] = repairLines(repair);
  return [
    `${shown}: ${titleOf(finding)}`,
    ...pairs.slice(0, -1).flatMap((line) => wrap(line, PAIR_INDENT)),
    `${pairs.at(-1)}${first.slice("  repair".length)}`,
    ...others,
  ];
}

/** The prose of a repair, wrapped, and each of its commands whole on a line of its own, so that it can be pasted. */
function repairLines(repair: string): string[] {
  return repair.split(COMMAND).flatMap((part, i) => {
    const indent = " ".repeat(PAIR_INDENT);
    if (i % 2 === 1)
      return [`${repair.startsWith("`") ? "" : "  "}${indent}${escapeControl(part)}`];
    const prose = escapeControl(part.replace(/^[;,]? +/, "").trimEnd());
    return prose === "" ? [] : wrap(indent + prose, PAIR_INDENT);
  });
}

/** A command in backticks. Its quoted words may hold backticks as well. */
const COMMAND = /`((?:npx|redis-cli|await|for) (?:\\.|'[^']*'|[^'`\\])*)`/;

const COLOURS = { error: "\u001b[31m", warning: "\u001b[33m", notice: "\u001b[36m" } as const;

/** Two spaces, `repair`, and two more. */
const PAIR_INDENT = 10;

/** How many errors the last line names. */
const MOST = 10;
