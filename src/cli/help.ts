import { COMMON_HELP, type Command, type OptionsConfig } from "./command/command.ts";
import { COMMANDS } from "./commands.ts";
import { wrap } from "./printing/wrap.ts";

/** What `delayline help` prints. */
export function overview(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const lines = Object.entries(COMMANDS).map(
    ([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`,
  );
  return [
    "usage: delayline <command> [options]",
    "",
    "Looks into the queues of a Redis, and changes them.",
    "",
    "  What is wrong?              delayline doctor",
    "  Where is a message?         delayline get order:42",
    "  What falls due at nine?     delayline due --at tomorrow 09:00",
    "",
    ...lines,
    "",
    "Options of every command:",
    ...optionLines(COMMON_HELP),
    "",
    "delayline help <command> tells more. Exit codes: 0 done, 1 nothing found, or",
    "doctor found errors, 2 not legal, 3 Redis not reached or refuses, 4 declined.",
    "",
  ].join("\n");
}

/** What `delayline help <command>` prints. */
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
    ...optionLines(COMMON_HELP),
    "",
  ].join("\n");
}

function optionLines(
  help: Readonly<Record<string, string>>,
  options: OptionsConfig = {},
): string[] {
  const rows = Object.entries(help).map(([name, text]) => {
    const short = options[name]?.short;
    return [`  ${short === undefined ? "" : `-${short}, `}--${name}`, text] as const;
  });
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  return rows.flatMap(([name, text]) => wrap(`${name.padEnd(width)}${text}`, width));
}

/** Lines that follow each other are one paragraph, but for those that begin with a space. */
function paragraphs(text: string): string[] {
  const found: string[] = [];
  for (const line of text.trim().split("\n")) {
    const last = found.at(-1);
    if (last === undefined || line.startsWith(" ") || last.startsWith(" ")) found.push(line);
    else found[found.length - 1] = `${last} ${line}`;
  }
  return found;
}
