import { setMaxListeners } from "node:events";
import { parseArgs } from "node:util";
import { DelaylineError, RedisError } from "../errors.ts";
import { escapeControl } from "../inspect/escape-control.ts";
import { readAddresses, secretsOf } from "./words/addresses.ts";
import { COMMON, type Command } from "./command/command.ts";
import { COMMANDS, type CommandName } from "./commands.ts";
import { parseDuration } from "./words/durations.ts";
import { EXIT, type ExitCode } from "./command/exit-code.ts";
import { helpOf, overview } from "./help.ts";
import { joinInstants } from "./words/instants.ts";
import type { Io } from "./printing/io.ts";
import { Session } from "./command/session.ts";
import { suggest } from "./words/suggest.ts";
import { DeclinedError, UsageError } from "./words/usage-error.ts";
import { readVersion } from "./version.ts";

/**
 * The `delayline` command. Returns its exit code; never rejects. Nothing that it writes has a password of Redis in it.
 *
 * @param argv the words behind the command's name.
 */
export async function main(argv: readonly string[], io: Io): Promise<ExitCode> {
  // Each call that waits listens to it.
  setMaxListeners(0, io.signal);
  try {
    return await runCommand(argv, io);
  } catch (error) {
    if (io.signal.aborted) {
      io.stderr.write("delayline: interrupted\n");
      return EXIT.interrupted;
    }
    return tell(error, urlsIn(argv, io), io);
  }
}

async function runCommand(argv: readonly string[], io: Io): Promise<ExitCode> {
  const at = commandAt(argv);
  const word = at === -1 ? undefined : argv[at];
  if (word === undefined || word === "help") return await help(argv, at, io);
  const command = await load(word);
  const rest = joinInstants(argv.filter((_, i) => i !== at));
  const { values, positionals } = parse(command, word, rest);
  if (values["help"] === true) {
    io.stdout.write(helpOf(command));
    return EXIT.done;
  }
  const [least, most] = command.words;
  if (positionals.length < least || positionals.length > most) {
    throw new UsageError(`usage: delayline ${command.usage}`);
  }
  const given = Array.isArray(values["redis"]) ? values["redis"].map(String) : [];
  const { interop = "none", timeout = "5s" } = values;
  if (interop !== "none" && interop !== "redisson") {
    throw new UsageError('--interop must be "none" or "redisson"');
  }
  const callTimeout = Math.max(1, Math.round(parseDuration("--timeout", String(timeout))));
  const isCluster = values["cluster"] === true;
  const addresses = readAddresses(given.length > 0 ? given : [urlOf(io)], isCluster);
  const isJson = values["json"] === true;
  const connection = { urls: given, isCluster, interop } as const;
  await using session = new Session(io, addresses, { callTimeout, connection, isJson });
  return await command.run(session, positionals, values as Parameters<Command["run"]>[2]);
}

async function help(argv: readonly string[], at: number, io: Io): Promise<ExitCode> {
  const { values } = parseArgs({
    args: [...argv],
    options: { ...COMMON, version: { type: "boolean" } },
    strict: false,
  });
  if (values["version"] === true) {
    io.stdout.write(`${readVersion()}\n`);
    return EXIT.done;
  }
  const topic = at === -1 ? undefined : argv.slice(at + 1).find((one) => !one.startsWith("-"));
  io.stdout.write(topic === undefined ? overview() : helpOf(await load(topic)));
  const isAsked = at !== -1 || values["help"] === true;
  return isAsked ? EXIT.done : EXIT.usage;
}

/** @throws {UsageError} if there is no such command. */
async function load(word: string): Promise<Command> {
  if (Object.hasOwn(COMMANDS, word)) return await COMMANDS[word as CommandName].load();
  throw new UsageError(
    `there is no command ${JSON.stringify(word)}${orMeant(word, [...Object.keys(COMMANDS), "help"])}`,
  );
}

/** Where the command's name is; common options may stand before it. -1: there is none. */
function commandAt(argv: readonly string[]): number {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string;
    if (!word.startsWith("-")) return i;
    const name = word.slice(2);
    const isValued =
      Object.hasOwn(COMMON, name) && COMMON[name as keyof typeof COMMON].type === "string";
    if (isValued) i++;
  }
  return -1;
}

/** @throws {UsageError} if an option is not known, or lacks its value. Values are not told. */
function parse(command: Command, name: string, args: string[]) {
  const options = { ...COMMON, ...command.options };
  try {
    const { values, positionals } = parseArgs({
      args,
      options,
      strict: true,
      allowPositionals: true,
    });
    return { values: values as Record<string, unknown>, positionals };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const [, option = ""] = /'(--?[\w-]+)/.exec((error as Error).message) ?? [];
    if (code === "ERR_PARSE_ARGS_UNKNOWN_OPTION") {
      const known = Object.keys(options).map((one) => `--${one}`);
      throw new UsageError(`${name} has no option ${option}${orMeant(option, known)}`, {
        cause: error,
      });
    }
    throw new UsageError(`${option || "an option"} of ${name} needs a value, or must have none`, {
      cause: error,
    });
  }
}

function orMeant(word: string, known: readonly string[]): string {
  const near = suggest(word, known);
  return near === undefined ? "; see delayline help" : `; did you mean ${near}?`;
}

/** Where Redis is, unless the command line says so. */
function urlOf({ env }: Io): string {
  const { REDIS_URL: url = "" } = env;
  return url === "" ? "redis://localhost:6379" : url;
}

/** Whatever may be a URL of Redis, even where the command line is not legal. */
function urlsIn(argv: readonly string[], { env }: Io): string[] {
  return [...argv, env["REDIS_URL"] ?? ""]
    .map((word) => word.replace(/^--redis=/, ""))
    .filter((word) => word.includes("://"));
}

/** Says what has failed, and returns the exit code. */
function tell(error: unknown, urls: readonly string[], io: Io): ExitCode {
  const say = (text: string) => {
    const bare = secretsOf(urls).reduce((all, secret) => all.replaceAll(secret, "***"), text);
    io.stderr.write(`delayline: ${escapeControl(bare)}\n`);
  };
  if (error instanceof DeclinedError) {
    say(error.message);
    return EXIT.declined;
  }
  if (error instanceof RedisError) {
    say(error.message);
    return EXIT.redis;
  }
  const isUsage = error instanceof UsageError || error instanceof DelaylineError;
  // The library refuses arguments that are not legal.
  if (isUsage || error instanceof TypeError || error instanceof RangeError) {
    say(error.message);
    return EXIT.usage;
  }
  say(`unexpected: ${error instanceof Error ? error.message : "something was thrown"}`);
  return EXIT.defect;
}
