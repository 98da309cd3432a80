import { COMMANDS } from "./commands.ts";
import { wrap } from "./session/output.ts";
import { COMMON, COMMON_HELP, type Command, type OptionsConfig } from "./session/command.ts";

/** The text of `delayline help`. */
export function overview(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const lines = Object.entries(COMMANDS).map(
    ([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`,
  );
  return [
    "usage: delayline <command> [options]",
    "",
    "Shows the queues in Redis, and changes them.",
    "",
    "  What is wrong?              delayline doctor",
    "  Where is a message?         delayline get order:42",
    "  What falls due at nine?     delayline due --at tomorrow 09:00",
    "",
    "Commands:",
    ...lines,
    "",
    "Options of every command:",
    ...optionLines(COMMON_HELP, COMMON),
    "",
    "Run delayline help <command> for the options of a command.",
    "",
    "Exit codes: 0 success; 1 nothing found, or doctor found errors; 2 usage error;",
    "3 Redis unreachable or refused; 4 you answered no; 5 some were not found;",
    "69 port in use; 74 cannot write.",
    "",
  ].join("\n");
}

/** The text of `delayline help <command>`. */
export function helpOf({ usage, help, options, optionHelp }: Command): string {
  const own =
    Object.keys(options).length === 0 ? [] : ["", "Options:", ...optionLines(optionHelp, options)];
  return [
    `usage: delayline ${usage}`,
    "",
    ...paragraphs(help).flatMap((text) => wrap(text)),
    ...own,
    "",
    "Options of every command:",
    ...optionLines(COMMON_HELP, COMMON),
    "",
  ].join("\n");
}

function optionLines(help: Readonly<Record<string, string>>, options: OptionsConfig): string[] {
  const rows = Object.entries(help).map(([name, text]) => {
    const option = options[name];
    const short = option?.short === undefined ? "    " : `-${option.short}, `;
    const value = option?.type === "string" ? ` ${option.value}` : "";
    return [`  ${short}--${name}${value}`, text] as const;
  });
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  return rows.flatMap(([name, text]) => wrap(`${name.padEnd(width)}${text}`, width));
}

/** Joins consecutive lines into paragraphs. A line that begins with a space stays a line. */
function paragraphs(text: string): string[] {
  const found: string[] = [];
  for (const line of text.trim().split("\n")) {
    const last = found.at(-1);
    if (last === undefined || line.startsWith(" ") || last.startsWith(" ")) found.push(line);
    else found[found.length - 1] = `${last} ${line}`;
  }
  return found;
}
