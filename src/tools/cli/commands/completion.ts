import { parseArgs } from "node:util";
import { escapeControl } from "../../view/text.ts";
import { parseSubWord } from "../session/arguments.ts";
import {
  commandAt,
  COMMON,
  COMMON_HELP,
  defineCommand,
  type Command,
  type CommandTable,
  type OptionsConfig,
} from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import type { Io } from "../session/output.ts";
import { openSession, type Session } from "../session/session.ts";

/** The command that completes words of the others, which `table` lists. */
export const completion = (table: CommandTable) =>
  defineCommand({
    usage: "completion bash|zsh|fish",
    help: `Prints a script that makes a shell complete subcommands, options, their values and the names of
queues and schedules, for the command delayline. To load it, add a line to ~/.bashrc, ~/.zshrc
(behind compinit) or ~/.config/fish/config.fish:
  eval "$(delayline completion bash)"
  eval "$(delayline completion zsh)"
  delayline completion fish | source
These names come from the Redis that the command would use, and take a second at most.`,
    words: [1, 1000],
    options: {},
    optionHelp: {},
    async run({ io, output }, [shell, ...words]) {
      // The scripts call it like this, with the words up to the cursor.
      if (shell === "words") {
        for (const { word, about } of await complete(table, words, io)) {
          io.stdout.write(`${word}\t${about}\n`);
        }
        return EXIT.done;
      }
      const name = parseSubWord("completion", shell, ["bash", "zsh", "fish"]);
      await output.print(...SCRIPTS[name].trim().split("\n"));
      return EXIT.done;
    },
  });

/** A word that may stand at the cursor, and what it means. */
interface Candidate {
  readonly word: string;
  readonly about: string;
}

/** The candidates for the last of the words, which may be empty. Never rejects: what is wrong completes to nothing. */
async function complete(
  table: CommandTable,
  words: readonly string[],
  io: Io,
): Promise<Candidate[]> {
  const current = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const all = await candidates(table, before, current, io).catch(() => []);
  return all.filter(({ word }) => word.startsWith(current) && escapeControl(word) === word);
}

async function candidates(
  table: CommandTable,
  before: readonly string[],
  current: string,
  io: Io,
): Promise<Candidate[]> {
  const at = commandAt(before);
  const name = before[at];
  const names = Object.entries(table).map(([word, { summary: about }]) => ({ word, about }));
  const command =
    name === undefined || !Object.hasOwn(table, name) ? undefined : await table[name]?.load();
  const options: OptionsConfig = { ...COMMON, ...command?.options };
  const option = Object.entries(options).find(([one, { short }]) => {
    const last = before.at(-1);
    return last === `--${one}` || (short !== undefined && last === `-${short}`);
  })?.[1];
  if (option?.type === "string") {
    const choices = (option.choices ?? []).map((word) => ({ word, about: "" }));
    return option.value === "<queue>" ? await search(before, options, io, queuesOf) : choices;
  }
  if (current.startsWith("-"))
    return flags(before, options, { ...COMMON_HELP, ...command?.optionHelp });
  if (command === undefined) {
    const help = { word: "help", about: "prints the options of a command" };
    return name === undefined ? [...names, help] : name === "help" ? names : [];
  }
  const { positionals } = parseArgs({ args: [...before], options, strict: false });
  const given = positionals.slice(1);
  const [first = "", ...others] = operandsOf(command);
  const choices = wordsIn(first).map((word) => ({ word, about: "" }));
  const mayBeLeftOut = choices.length > 0 && first.startsWith("[");
  const isLeftOut = mayBeLeftOut && given.length > 0 && !wordsIn(first).includes(given[0] ?? "");
  const operands = isLeftOut ? others : [first, ...others];
  const named = (operand: string | undefined) => {
    if (operand === "[queue]" || operand === "<queue>")
      return search(before, options, io, queuesOf);
    const queue = given[operands.indexOf("[queue]")];
    if (operand !== "[name]" || queue === undefined) return [];
    return search(before, options, io, (session) => schedulesOf(session, queue));
  };
  if (given.length === 0 && choices.length > 0)
    return mayBeLeftOut ? [...choices, ...(await named(others[0]))] : choices;
  return await named(operands[given.length]);
}

/**
 * What the usage line of a command says about each of its words: `<queue>`, `[name]`, or alternatives such as
 * `bash|zsh|fish`, which may be left out if they are in brackets. The last one repeats if more may follow.
 */
function operandsOf({ usage, words: [, most] }: Command): string[] {
  const [, ...parts] = usage.match(/\[[^\]]*\]|<[^>]*>|[^\s[<]+/g) ?? [];
  const end = parts.findIndex((part) => /^[[(]?-/.test(part));
  const operands = (end === -1 ? parts : parts.slice(0, end)).filter((part) => part !== "...");
  const isEndless = usage.includes("]...") && operands.length > 0;
  return isEndless
    ? [...operands, ...Array<string>(Math.min(most, 50)).fill(operands.at(-1) ?? "")]
    : operands;
}

/** The alternatives of an operand; none if it has a name. */
function wordsIn(operand: string): string[] {
  return operand.includes("|") ? operand.replaceAll(/^\[|\]$/g, "").split("|") : [];
}

/** The options that were not given yet. */
function flags(
  before: readonly string[],
  options: OptionsConfig,
  help: Readonly<Record<string, string>>,
): Candidate[] {
  return Object.entries(options)
    .filter(
      ([name, option]) =>
        ("multiple" in option && option.multiple) || !before.includes(`--${name}`),
    )
    .map(([name]) => ({ word: `--${name}`, about: help[name] ?? "" }));
}

/** What a search finds in the Redis that the words name, within {@link PATIENCE}. */
async function search(
  before: readonly string[],
  options: OptionsConfig,
  io: Io,
  find: (session: Session) => AsyncIterable<Candidate>,
): Promise<Candidate[]> {
  const { values } = parseArgs({ args: [...before], options, strict: false });
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(PATIENCE)]);
  await using session = openSession({ ...io, signal }, { ...values, timeout: `${PATIENCE}ms` });
  const found: Candidate[] = [];
  try {
    for await (const one of find(session)) found.push(one);
  } catch {
    // A shell waits: what was found until now is better than nothing.
  }
  return found.toSorted((a, b) => (a.word < b.word ? -1 : 1));
}

async function* queuesOf(session: Session): AsyncGenerator<Candidate, void, void> {
  const { line } = await session.inspector();
  const { signal } = session;
  for await (const word of line.queues({ signal })) yield { word, about: "queue" };
}

async function* schedulesOf(
  session: Session,
  queue: string,
): AsyncGenerator<Candidate, void, void> {
  const { messages } = await session.open(queue);
  const all = messages.schedules.list({ signal: session.signal });
  for await (const { name: word } of all) yield { word, about: "schedule" };
}

/** How long a search may take, in milliseconds. */
const PATIENCE = 1000;

/** Each asks for the candidates by `delayline completion words`. Without any, the shell completes the names of files. */
const SCRIPTS = {
  bash: `
_delayline() {
  local line=\${COMP_LINE:0:COMP_POINT} cut= break word current
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  current=\${words[\${#words[@]}-1]}
  # Readline replaces only what follows the last of its word breaks.
  for break in : =; do
    [[ $COMP_WORDBREAKS == *$break* && $current == *$break* ]] && cut=\${current%"\${current##*$break}"}
  done
  COMPREPLY=()
  while IFS=$'\\t' read -r word _; do
    printf -v word %q "$word"
    COMPREPLY+=("\${word#"$cut"}")
  done < <("\${words[0]}" completion words -- "\${words[@]:1}" 2>/dev/null)
}
complete -o default -F _delayline delayline
`,
  zsh: `
_delayline() {
  local -a found
  local word about
  while IFS=$'\\t' read -r word about; do
    found+=("\${word//:/\\\\:}\${about:+:$about}")
  done < <("$words[1]" completion words -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)
  if ((\${#found})); then _describe delayline found; else _files; fi
}
compdef _delayline delayline
`,
  fish: `
function __delayline_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l found ($program completion words -- $words "$current" 2>/dev/null)
    if set -q found[1]
        string join \\n -- $found
    else
        __fish_complete_path "$current"
    end
end
complete -c delayline -f -a '(__delayline_complete)'
`,
} as const;
