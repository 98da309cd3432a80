import { setMaxListeners } from "node:events";
import { parseArgs } from "node:util";
import { DelaylineError, RedisError } from "../../index.ts";
import { causeOf, optionFor, suggest } from "../../inside.ts";
import { escapeControl } from "../view/text.ts";
import { VERSION } from "../version.ts";
import { COMMANDS, type CommandName } from "./commands.ts";
import { helpOf, overview } from "./help.ts";
import { secretsIn } from "./session/addresses.ts";
import { MachineError, UsageError } from "./session/arguments.ts";
import { joinInstants } from "./session/instants.ts";
import type { Io } from "./session/output.ts";
import { commandAt, COMMON, type Command } from "./session/command.ts";
import { EXIT, type ExitCode } from "./session/exit.ts";
import { DeclinedError, openSession } from "./session/session.ts";

/**
 * Runs the `delayline` command and returns its exit code; never rejects. Its error messages hold no Redis password.
 *
 * @param argv the arguments after the command's name.
 */
export async function main(argv: readonly string[], io: Io): Promise<ExitCode> {
  // Every call under way listens to the signal.
  setMaxListeners(0, io.signal);
  try {
    return await runCommand(argv, io);
  } catch (error) {
    if (io.signal.aborted) {
      io.stderr.write("delayline: interrupted\n");
      return EXIT.interrupted;
    }
    return reportFailure(error, urlsIn(argv, io), io);
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
  await using session = openSession(io, values);
  return await command.run(session, positionals, values as Parameters<Command["run"]>[2]);
}

async function help(argv: readonly string[], at: number, io: Io): Promise<ExitCode> {
  const { values } = parseArgs({
    args: [...argv],
    options: { ...COMMON, version: { type: "boolean" } },
    strict: false,
  });
  if (values["version"] === true) {
    io.stdout.write(`${VERSION}\n`);
    return EXIT.done;
  }
  const topic = at === -1 ? undefined : argv.slice(at + 1).find((one) => !one.startsWith("-"));
  io.stdout.write(topic === undefined ? overview() : helpOf(await load(topic)));
  const isAsked = at !== -1 || values["help"] === true;
  return isAsked ? EXIT.done : EXIT.usage;
}

/** Words of other tools for what commands do, and what to write instead. */
const BROUGHT: readonly (readonly [names: string, write: string])[] = [
  ["abort kill stop terminate discard canceljob removejob jobcancel cancelprocessing", "revoke"],
  ["remove delete del rm drop", "cancel, or revoke for what is ready or runs"],
  ["obliterate drain purge empty clear flush", "cancel --prefix"],
  ["promote trigger runnow", "deliver-now"],
  ["retry redrive requeue", "dead redrive"],
  ["ps active inflight", "running"],
  ["find show inspect locate where", "get"],
];

/** @throws {UsageError} if there is no such command. */
async function load(word: string): Promise<Command> {
  if (Object.hasOwn(COMMANDS, word)) return await COMMANDS[word as CommandName].load();
  const squeezed = word.replaceAll(/[-_]/g, "").toLowerCase();
  const [, brought] = BROUGHT.find(([names]) => names.split(" ").includes(squeezed)) ?? [];
  const near = brought ?? suggest(word, [...Object.keys(COMMANDS), "help"]);
  throw new UsageError(
    `there is no command ${JSON.stringify(word)}${near === undefined ? "; run delayline help" : `; did you mean ${near}?`}`,
  );
}

/**
 * @throws {UsageError} if an option is unknown or lacks its value. The message repeats no values: one may be a
 * password.
 */
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
    const [, option = ""] = /'(?:-\w, )?(--?[\w-]+)/.exec((error as Error).message) ?? [];
    if (code === "ERR_PARSE_ARGS_UNKNOWN_OPTION") {
      const near = optionFor(option.replace(/^-+/, ""), Object.keys(options));
      const wayOut = near === undefined ? "; run delayline help" : `; did you mean --${near}?`;
      throw new UsageError(`${name} has no option ${option}${wayOut}`, { cause: error });
    }
    const { message } = error as Error;
    const rule = message.includes("does not take")
      ? "takes no value"
      : message.includes("ambiguous")
        ? "needs a value that does not begin with -"
        : "lacks its value";
    throw new UsageError(`${option || "an option"} of ${name} ${rule}`, { cause: error });
  }
}

/** Everything that may be a URL of Redis, even in an invalid command line. */
function urlsIn(argv: readonly string[], { env }: Io): string[] {
  return [...argv, env["REDIS_URL"] ?? ""]
    .map((word) => word.replace(/^--redis=/, ""))
    .filter((word) => word.includes("://"));
}

/** Prints why the command failed, with passwords masked, and returns the exit code. */
function reportFailure(error: unknown, urls: readonly string[], io: Io): ExitCode {
  const say = (text: string) => {
    const { REDISCLI_AUTH: password = "" } = io.env;
    const secrets = [...secretsIn(urls), ...(password === "" ? [] : [password])];
    const masked = secrets.reduce((all, secret) => all.replaceAll(secret, "***"), text);
    io.stderr.write(`delayline: ${escapeControl(masked)}\n`);
  };
  if (error instanceof DeclinedError) {
    say(error.message);
    return EXIT.declined;
  }
  if (error instanceof RedisError) {
    say(error.message);
    const cause = causeOf(error);
    // The message ends with the way out.
    if (cause !== undefined) say(`Redis ${cause.what}`);
    return EXIT.redis;
  }
  if (error instanceof MachineError) {
    say(error.message);
    return error.exit;
  }
  const isUsage = error instanceof UsageError || error instanceof DelaylineError;
  // The library throws these for invalid arguments.
  if (isUsage || error instanceof TypeError || error instanceof RangeError) {
    say(error.message);
    return EXIT.usage;
  }
  say(
    `unexpected: ${error instanceof Error ? error.message : "a value that is not an Error was thrown"}`,
  );
  return EXIT.defect;
}
