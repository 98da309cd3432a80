import { createInterface } from "node:readline/promises";
import { RedisError } from "../../errors.ts";
import { checkDatabase } from "../../inspect/check-database.ts";
import { Inspector, type InspectedQueue } from "../../inspect/inspector.ts";
import { escapeControl } from "../../inspect/escape-control.ts";
import type { Addresses } from "../words/addresses.ts";
import { commandLine, type Connection } from "../words/command-line.ts";
import type { Io } from "../printing/io.ts";
import { Output, quoted } from "../printing/output.ts";
import { suggest } from "../words/suggest.ts";
import { DeclinedError, UsageError } from "../words/usage-error.ts";

/** What one run of a subcommand works with. */
export class Session implements AsyncDisposable {
  readonly io: Io;
  readonly output: Output;
  readonly addresses: Addresses;
  readonly isJson: boolean;
  readonly #options: { readonly callTimeout: number; readonly interop: "none" | "redisson" };
  readonly #connection: Connection;
  #inspector: Inspector | undefined;
  /** Whether Redis has replied, and has the database. */
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
    this.#options = { callTimeout, interop: connection.interop };
    this.#connection = connection;
  }

  /** What `--timeout` and `--interop` say. */
  get options(): { readonly callTimeout: number; readonly interop: "none" | "redisson" } {
    return this.#options;
  }

  get signal(): AbortSignal {
    return this.io.signal;
  }

  /** A command to be pasted into a shell, for the same Redis; undefined if one of its words cannot be. */
  commandLine(...words: readonly string[]): string | undefined {
    return commandLine(words, this.#connection);
  }

  /** Says something of which the reader learns more from a command, if there is one. */
  hint(said: string, why: string, ...words: readonly string[]): void {
    const command = this.commandLine(...words);
    this.output.say(command === undefined ? said : `${said} ${why}: ${command}`);
  }

  /** Opens queues; Redis is there. */
  async inspector(): Promise<Inspector> {
    const { redis } = this.addresses;
    this.#inspector ??= new Inspector({
      redis,
      ...this.#options,
      closeTimeout: 1000,
      onError: ignore,
    });
    if (this.#isChecked) return this.#inspector;
    await this.#inspector.line.serverTime({ signal: this.signal });
    for (const url of this.addresses.urls) await checkDatabase(url, this.#options.callTimeout);
    this.#isChecked = true;
    return this.#inspector;
  }

  /**
   * Opens a queue that is there.
   *
   * @throws {UsageError} if there is none of that name.
   */
  async open(name: string): Promise<InspectedQueue> {
    const inspector = await this.inspector();
    const queue = await inspector.open(name, this.signal);
    const { delayed, ready, inFlight, retries, dead, quarantined, kind } = queue.stats;
    const count = delayed + ready + inFlight + retries + dead + quarantined;
    if (count > 0 || kind === "reliable" || queue.partitions > 0) return queue;
    // One that was used is known for a while, though nothing is in it.
    const names = await inspector.names(this.signal);
    if (names.includes(name)) return queue;
    const near = suggest(name, names);
    throw new UsageError(
      `there is no queue ${quoted(name)}${near === undefined ? "" : `; did you mean ${quoted(near)}?`}`,
    );
  }

  /**
   * Looks at every queue. One that Redis refuses to tell of, such as for a key of another type, is told of on stderr, and does
   * not hide the others; returns how many there are of each.
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
        this.output.say(`Cannot look into queue ${quoted(name)}: ${escapeControl(error.message)}`);
        onRefused(name, error);
      }
    }
    return { count: names.length, refused };
  }

  /**
   * Asks before something is changed; returns whether to do it. With `--dry-run` it says what would be done, and returns
   * false.
   *
   * @throws {DeclinedError} if the answer is no.
   * @throws {UsageError} if nobody can be asked, and there is no `--yes`.
   */
  async mayChange(
    doing: string,
    { yes = false, "dry-run": isDry = false }: { yes?: boolean; "dry-run"?: boolean },
  ): Promise<boolean> {
    if (isDry) {
      this.output.say(`Would ${doing}. Nothing was changed.`);
      return false;
    }
    if (yes) return true;
    const { stdin, stderr, signal } = this.io;
    if (stdin.isTTY !== true) {
      throw new UsageError(`say --yes to ${doing}: there is no terminal to ask on`);
    }
    // Without a terminal of its own, which would keep Ctrl-C from the process.
    const lines = createInterface({ input: stdin, output: stderr, terminal: false });
    try {
      const asked = lines.question(`Really ${doing}? [y/N] `, { signal });
      // After Ctrl-D nobody answers any more.
      const closed = new Promise<string>((resolve) => {
        // An answer may come with the end of the input, and counts.
        lines.once("close", () => setImmediate(resolve, "\n"));
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#inspector?.close();
    this.addresses.close();
  }
}

/** What a call fails for it tells itself. */
function ignore(): void {}
