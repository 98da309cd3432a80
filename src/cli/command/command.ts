import type { ExitCode } from "./exit-code.ts";
import type { Session } from "./session.ts";

/** The options of a subcommand, as `parseArgs` wants them. */
export type OptionsConfig = Readonly<
  Record<
    string,
    { readonly type: "string" | "boolean"; readonly short?: string; readonly multiple?: boolean }
  >
>;

/** The values of options that were given. */
type ValuesOf<Options extends OptionsConfig> = {
  readonly [Name in keyof Options]?: Options[Name]["type"] extends "string" ? string : boolean;
};

/** A subcommand. */
export interface Command<Options extends OptionsConfig = OptionsConfig> {
  /** How it is called, without the options. */
  readonly usage: string;
  /** What it does, for `delayline help <command>`. */
  readonly help: string;
  readonly options: Options;
  /** How many words it takes besides, at least and at most. */
  readonly words: readonly [least: number, most: number];
  /** For `help`: what each option does. */
  readonly optionHelp: { readonly [Name in keyof Options]: string };
  run(session: Session, words: readonly string[], values: ValuesOf<Options>): Promise<ExitCode>;
}

/** Declares a subcommand. */
export function defineCommand<const Options extends OptionsConfig>(
  command: Command<Options>,
): Command {
  return command;
}

/** Options that every subcommand has. */
export const COMMON = {
  redis: { type: "string", multiple: true },
  cluster: { type: "boolean" },
  interop: { type: "string" },
  timeout: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const satisfies OptionsConfig;

export const COMMON_HELP: { readonly [Name in keyof typeof COMMON]: string } = {
  redis: "URL of Redis, again for each of several servers; else REDIS_URL",
  cluster: "the URL is that of a node of a Cluster",
  interop: '"redisson", for a queue that processes open so',
  timeout: "how long one call may take; defaults to 5s",
  json: "one JSON document a line",
  help: "what the command does",
};

/** Options of what changes something. */
export const CHANGING = {
  yes: { type: "boolean", short: "y" },
  "dry-run": { type: "boolean", short: "n" },
} as const satisfies OptionsConfig;

export const CHANGING_HELP = {
  yes: "does not ask",
  "dry-run": "changes nothing, and tells what it would do",
} as const;
