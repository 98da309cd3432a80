import { createInterface } from "node:readline/promises";
import { RedisError, type DelayedMessage } from "../../../index.ts";
import { networkTime, suggest } from "../../../inside.ts";
import { Inspector, type InspectedQueue } from "../../view/inspector.ts";
import { escapeControl, shellWord, type CommandWord } from "../../view/text.ts";
import {
  DEFAULT_URL,
  parseAddresses,
  withoutPassword,
  withPassword,
  type Addresses,
  type Topology,
} from "./addresses.ts";
import { parseChoice, parseDuration, UsageError } from "./arguments.ts";
import { EXIT, type ExitCode } from "./exit.ts";
import { Output, quoted, type Io } from "./output.ts";
import { messagesIn } from "../../view/places.ts";

/** The values of `--timeout` and `--interop`. */
interface SessionOptions {
  readonly callTimeout: number;
  readonly interop: "none" | "redisson";
}

/** One run of a subcommand: its input and output, and the queues, opened on demand. */
export class Session implements AsyncDisposable {
  readonly io: Io;
  readonly output: Output;
  readonly addresses: Addresses;
  /** The URLs of `--redis`, else that of `REDIS_URL`, with their passwords; empty if neither is given. */
  readonly namedUrls: readonly string[];
  readonly isJson: boolean;
  readonly options: SessionOptions;
  readonly #connection: Connection;
  #inspector: Inspector | undefined;
  /** Whether Redis has replied. */
  #isChecked = false;

  constructor(
    io: Io,
    addresses: Addresses,
    options: {
      readonly callTimeout: number;
      readonly connection: Connection;
      readonly namedUrls: readonly string[];
      readonly isJson: boolean;
    },
  ) {
    this.io = io;
    this.output = new Output(io);
    this.addresses = addresses;
    const { isJson, callTimeout, connection, namedUrls } = options;
    this.isJson = isJson;
    this.namedUrls = namedUrls;
    this.options = { callTimeout, interop: connection.interop };
    this.#connection = connection;
  }

  get signal(): AbortSignal {
    return this.io.signal;
  }

  /**
   * A `delayline` command to paste into a shell, for the same Redis; undefined if one of the words cannot be pasted.
   */
  readonly commandLine = (...words: readonly CommandWord[]): string | undefined =>
    commandLine(words, this.#connection);

  /** Prints a remark on stderr, and the command that shows more, if it can be pasted. */
  hint(said: string, why: string, ...words: readonly CommandWord[]): void {
    const command = this.commandLine(...words);
    this.output.say(command === undefined ? said : `${said} ${why}: ${command}`);
  }

  /**
   * The inspector that opens queues. The first call waits for Redis.
   *
   * @throws {RedisError} if Redis does not reply, or refuses the client.
   */
  async inspector(): Promise<Inspector> {
    const { redis } = this.addresses;
    this.#inspector ??= new Inspector({
      redis,
      ...this.options,
      unreachableTimeout: 1000,
      // Each call rejects with its own failure.
      onError: () => {},
    });
    if (this.#isChecked) return this.#inspector;
    await this.#inspector.line.serverTime({ signal: this.signal });
    this.#isChecked = true;
    return this.#inspector;
  }

  /**
   * Opens a queue that exists.
   *
   * @throws {UsageError} that suggests the closest name, if there is no queue of that name.
   */
  async open(name: string): Promise<InspectedQueue> {
    const inspector = await this.inspector();
    const queue = await inspector.open(name, this.signal);
    const { kind } = queue.stats;
    if (messagesIn(queue.stats) > 0 || kind === "reliable" || queue.partitions > 0) return queue;
    // An empty plain queue is still listed for a while after its last use.
    const names = await inspector.names(this.signal);
    if (names.includes(name)) return queue;
    const near = suggest(name, names);
    const advice =
      near === undefined
        ? "it may be in another database or under another key prefix, or plain, empty and open nowhere"
        : `did you mean ${quoted(near)}?`;
    throw new UsageError(`there is no queue ${quoted(name)}; ${advice}`);
  }

  /**
   * Opens every queue and calls `look` with it. Returns how many queues there are, and for how many Redis refused a
   * command, for example because a key holds another type. A refused queue is reported on stderr and does not stop the
   * others.
   *
   * @throws {RedisError} if Redis does not reply.
   */
  async eachQueue(
    look: (queue: InspectedQueue) => Promise<void>,
    onRefused: (name: string, error: RedisError) => void = () => {},
  ): Promise<{ readonly count: number; readonly refused: number }> {
    const inspector = await this.inspector();
    const names = await inspector.names(this.signal);
    let refused = 0;
    for (const name of names) {
      try {
        await look(await inspector.open(name, this.signal));
      } catch (error) {
        if (!(error instanceof RedisError) || error.reply === undefined) throw error;
        refused++;
        this.output.say(`Cannot read queue ${quoted(name)}: ${escapeControl(error.message)}`);
        onRefused(name, error);
      }
    }
    return { count: names.length, refused };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#inspector?.close();
    this.addresses.close();
  }
}

/**
 * Begins a run with these values of the common options. Nothing is connected yet.
 *
 * @throws {UsageError} if one of them is not legal.
 */
export function openSession(io: Io, values: Readonly<Record<string, unknown>>): Session {
  const given = Array.isArray(values["redis"]) ? values["redis"].map(String) : [];
  const { timeout = "5s", json = false } = values;
  const callTimeout = Math.max(1, Math.round(parseDuration("--timeout", String(timeout))));
  const isCluster = values["cluster"] === true;
  const { sentinel, interop: mode = "none" } = values as {
    readonly sentinel?: string;
    readonly interop?: string;
  };
  const interop = parseChoice("--interop", mode, ["none", "redisson"]);
  const topology = { isCluster, sentinel };
  const { REDISCLI_AUTH: password = "", REDIS_URL: usual = "" } = io.env;
  const named = given.length > 0 || usual === "" ? given : [usual];
  const namedUrls = named.map((url) => withPassword(url, password));
  const addresses = parseAddresses(named.length > 0 ? namedUrls : [DEFAULT_URL], topology);
  const connection = { urls: given, ...topology, interop } as const;
  return new Session(io, addresses, { callTimeout, connection, namedUrls, isJson: json === true });
}

/** The options that say which Redis a command is for, and how it opens queues there. */
interface Connection extends Topology {
  /** The values of `--redis`; empty where `REDIS_URL` or the default applies. */
  readonly urls: readonly string[];
  readonly interop: "none" | "redisson";
}

/**
 * A `delayline` command to paste into a shell, with the connection options of this run. A password is left out: the
 * command reads it from `REDISCLI_AUTH`. `<the same>` replaces a URL that may hold other secrets. Returns undefined if a word cannot be pasted: it begins like an option, or holds characters
 * that are only shown escaped.
 */
export function commandLine(
  words: readonly CommandWord[],
  { urls, isCluster, sentinel, interop }: Connection,
): string | undefined {
  const all = [
    ...words.flat(),
    ...urls.flatMap((url) => ["--redis", withoutPassword(url) ?? "<the same>"]),
    ...(isCluster ? ["--cluster"] : []),
    ...(sentinel === undefined ? [] : ["--sentinel", sentinel]),
    ...(interop === "none" ? [] : ["--interop", interop]),
  ];
  const isPasteable =
    all.every((word) => escapeControl(word) === word) &&
    !words.some((word) => typeof word === "string" && /^-|^$/.test(word));
  return isPasteable ? ["npx", "delayline", ...all.map(shellWord)].join(" ") : undefined;
}

/** The user answered no. Nothing was changed. */
export class DeclinedError extends Error {
  static override readonly name: string = "DeclinedError";
}

/**
 * Asks for confirmation of a change such as `pause queue "orders"`; returns whether to make it. With `--dry-run` it
 * prints the change and returns false.
 *
 * @throws {DeclinedError} if the user answers no.
 * @throws {UsageError} if there is neither a terminal nor `--yes`.
 */
export async function confirm(
  { io, output }: Session,
  change: string,
  { yes = false, "dry-run": isDry = false }: { yes?: boolean; "dry-run"?: boolean },
): Promise<boolean> {
  if (isDry) {
    output.say(`Would ${change}. Nothing was changed.`);
    return false;
  }
  if (yes) return true;
  const { stdin, stderr, signal } = io;
  if (stdin.isTTY !== true) {
    throw new UsageError(`there is no terminal to ask on: give --yes to ${change}`);
  }
  // `terminal: true` would put the terminal into raw mode, in which Ctrl-C no longer reaches the process.
  const lines = createInterface({ input: stdin, output: stderr, terminal: false });
  try {
    const asked = lines.question(`Really ${change}? [y/N] `, { signal });
    // After Ctrl-D the question never settles.
    const closed = new Promise<string>((resolve) => {
      // The input may end with the answer, without a line break. Let the answer settle first.
      lines.once("close", () => networkTime.setTimeout(() => resolve("\n"), 0));
    });
    const answer = await Promise.race([asked.catch(() => closed), closed]);
    signal.throwIfAborted();
    if (answer === "\n") stderr.write(answer);
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new DeclinedError("Nothing was changed.");
    return true;
  } finally {
    lines.close();
  }
}

/** Returns the delayed and retrying messages that these ids and keys name. Reports the others on stderr. */
export async function findMessages(
  session: Session,
  { name, messages }: InspectedQueue,
  wanted: readonly string[],
): Promise<Map<string, DelayedMessage<unknown>>> {
  const { signal } = session;
  const found = new Map<string, DelayedMessage<unknown>>();
  for (const idOrKey of wanted) {
    const message = await messages.get(idOrKey, { signal });
    if (message !== undefined) found.set(idOrKey, message);
    else {
      const said = `${quoted(idOrKey)} is neither delayed nor retrying in queue ${quoted(name)}.`;
      session.hint(said, "Where it is", "get", name, idOrKey);
    }
  }
  return found;
}

/** The exit code after a change of `count` messages, which was asked for by ids or keys, or by none of them. */
export function outcome(count: number, asked: readonly string[]): ExitCode {
  if (count === 0) return EXIT.nothing;
  return count < asked.length ? EXIT.partial : EXIT.done;
}
