import { RedisError } from "../../../errors.ts";
import { checkDatabase } from "../../inspect/check-database.ts";
import { escapeControl } from "../../inspect/escape-control.ts";
import { Inspector, type InspectedQueue } from "../../inspect/inspector.ts";
import { suggest } from "../../inspect/suggest.ts";
import type { Addresses } from "../parsing/addresses.ts";
import { UsageError } from "../parsing/usage-error.ts";
import { commandLine, type Connection } from "../printing/command-line.ts";
import type { Io } from "../printing/io.ts";
import { Output, quoted } from "../printing/output.ts";

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
  readonly isJson: boolean;
  readonly options: SessionOptions;
  readonly #connection: Connection;
  #inspector: Inspector | undefined;
  /** Whether Redis has replied and has the database that the URL names. */
  #isChecked = false;

  constructor(
    io: Io,
    addresses: Addresses,
    options: {
      readonly callTimeout: number;
      readonly connection: Connection;
      readonly isJson: boolean;
    },
  ) {
    this.io = io;
    this.output = new Output(io);
    this.addresses = addresses;
    const { isJson, callTimeout, connection } = options;
    this.isJson = isJson;
    this.options = { callTimeout, interop: connection.interop };
    this.#connection = connection;
  }

  get signal(): AbortSignal {
    return this.io.signal;
  }

  /**
   * A `delayline` command to paste into a shell, for the same Redis; undefined if one of the words cannot be pasted.
   */
  readonly commandLine = (...words: readonly string[]): string | undefined =>
    commandLine(words, this.#connection);

  /** Prints a remark on stderr, and the command that shows more, if it can be pasted. */
  hint(said: string, why: string, ...words: readonly string[]): void {
    const command = this.commandLine(...words);
    this.output.say(command === undefined ? said : `${said} ${why}: ${command}`);
  }

  /**
   * The inspector that opens queues. The first call waits for Redis.
   *
   * @throws {RedisError} if Redis does not reply, or does not have the database.
   */
  async inspector(): Promise<Inspector> {
    const { redis } = this.addresses;
    this.#inspector ??= new Inspector({
      redis,
      ...this.options,
      closeTimeout: 1000,
      // Each call rejects with its own failure.
      onError: () => {},
    });
    if (this.#isChecked) return this.#inspector;
    await this.#inspector.line.serverTime({ signal: this.signal });
    for (const url of this.addresses.urls) await checkDatabase(url, this.options.callTimeout);
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
    const { delayed, ready, inFlight, retries, dead, quarantined, kind } = queue.stats;
    const count = delayed + ready + inFlight + retries + dead + quarantined;
    if (count > 0 || kind === "reliable" || queue.partitions > 0) return queue;
    // An empty plain queue is still listed for a while after its last use.
    const names = await inspector.names(this.signal);
    if (names.includes(name)) return queue;
    const near = suggest(name, names);
    throw new UsageError(
      `there is no queue ${quoted(name)}${near === undefined ? "" : `; did you mean ${quoted(near)}?`}`,
    );
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
