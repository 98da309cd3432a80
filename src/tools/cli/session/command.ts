import type { ExitCode } from "./exit.ts";
import type { Session } from "./session.ts";

/** The options of a subcommand, as `parseArgs` takes them, with the placeholder that help prints for a value. */
export type OptionsConfig = Readonly<
  Record<
    string,
    | { readonly type: "boolean"; readonly short?: string }
    | {
        readonly type: "string";
        readonly value: `<${string}>`;
        /** The only values that it takes, if they can be listed. */
        readonly choices?: readonly string[];
        readonly short?: string;
        readonly multiple?: boolean;
      }
  >
>;

/** The values of the options that were given. */
type ValuesOf<Options extends OptionsConfig> = {
  readonly [Name in keyof Options]?: Options[Name] extends { readonly multiple: true }
    ? readonly string[]
    : Options[Name]["type"] extends "string"
      ? string
      : boolean;
};

/** A subcommand. */
export interface Command<Options extends OptionsConfig = OptionsConfig> {
  /** The subcommand and its arguments, for the usage line. */
  readonly usage: string;
  /** Its description, for `delayline help <command>`. */
  readonly help: string;
  readonly options: Options;
  /** How many positional arguments it takes. */
  readonly words: readonly [least: number, most: number];
  /** The descriptions of its options, for help. */
  readonly optionHelp: { readonly [Name in keyof Options]: string };
  run(session: Session, words: readonly string[], values: ValuesOf<Options>): Promise<ExitCode>;
}

/** Declares a subcommand: checks its options against its help, and infers their values. */
export function defineCommand<const Options extends OptionsConfig>(
  command: Command<Options>,
): Command {
  return command;
}

/** A subcommand in the table of all, loaded on demand. */
export interface CommandEntry {
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** All subcommands by name. */
export type CommandTable = Readonly<Record<string, CommandEntry>>;

/** Options of every subcommand. */
export const COMMON = {
  redis: { type: "string", value: "<url>", multiple: true },
  cluster: { type: "boolean" },
  sentinel: { type: "string", value: "<name>" },
  interop: { type: "string", value: "<mode>", choices: ["none", "redisson"] },
  timeout: { type: "string", value: "<duration>" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const satisfies OptionsConfig;

export const COMMON_HELP: { readonly [Name in keyof typeof COMMON]: string } = {
  redis: "connects to this Redis; repeat it for several servers; defaults to REDIS_URL",
  cluster: "treats the URLs as nodes of one Redis Cluster",
  sentinel: "treats the URLs as Sentinels, and connects to the master that has this name there",
  interop: "opens queues in this interop mode, none or redisson; defaults to none",
  timeout: "limits each call to Redis; defaults to 5s",
  json: "prints JSON, one document per line",
  help: "prints help for the command",
};

/** Options of the subcommands that change data. */
export const CHANGING = {
  yes: { type: "boolean", short: "y" },
  "dry-run": { type: "boolean", short: "n" },
} as const satisfies OptionsConfig;

export const CHANGING_HELP = {
  yes: "does not ask for confirmation",
  "dry-run": "says what would change, and changes nothing",
} as const;

/** The index of the subcommand's name, which common options may precede; -1 if there is none. */
export function commandAt(argv: readonly string[]): number {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string;
    if (!word.startsWith("-")) return i;
    const name = word.slice(2);
    const takesValue =
      Object.hasOwn(COMMON, name) && COMMON[name as keyof typeof COMMON].type === "string";
    if (takesValue) i++;
  }
  return -1;
}
