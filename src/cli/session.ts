import { createInterface } from "node:readline/promises";
import { Inspector, type InspectedQueue } from "../inspect/inspector.ts";
import type { Addresses } from "./addresses.ts";
import type { Io } from "./io.ts";
import { Output, quoted } from "./output.ts";
import { suggest } from "./suggest.ts";
import { DeclinedError, UsageError } from "./usage-error.ts";

/** What one run of a subcommand works with. */
export class Session implements AsyncDisposable {
  readonly io: Io;
  readonly output: Output;
  readonly addresses: Addresses;
  readonly isJson: boolean;
  readonly #options: { readonly callTimeout: number; readonly interop: "none" | "redisson" };
  #inspector: Inspector | undefined;

  constructor(
    io: Io,
    addresses: Addresses,
    options: {
      readonly callTimeout: number;
      readonly interop: "none" | "redisson";
      readonly isJson: boolean;
    },
  ) {
    this.io = io;
    this.output = new Output(io);
    this.addresses = addresses;
    const { isJson, ...others } = options;
    this.isJson = isJson;
    this.#options = others;
  }

  /** What `--timeout` and `--interop` say. */
  get options(): { readonly callTimeout: number; readonly interop: "none" | "redisson" } {
    return this.#options;
  }

  get signal(): AbortSignal {
    return this.io.signal;
  }

  /** Opens queues; Redis is there. */
  async inspector(): Promise<Inspector> {
    if (this.#inspector !== undefined) return this.#inspector;
    const { redis } = this.addresses;
    this.#inspector = new Inspector({
      redis,
      ...this.#options,
      closeTimeout: 1000,
      onError: ignore,
    });
    await this.#inspector.line.serverTime({ signal: this.signal });
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
      const answer = await lines.question(`Really ${doing}? [y/N] `, { signal });
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
