import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { PassThrough, Readable } from "node:stream";
import { inject, onTestFinished } from "vitest";
import { main } from "../../src/tools/cli/main.ts";
import { redisUrl } from "./redis.ts";

/** The outcome of one run of the command. */
export interface CliRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The lines that it printed with `--json`, parsed. */
  readonly json: readonly Readonly<Record<string, unknown>>[];
}

export interface CliOptions {
  readonly url?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input, typed or piped. */
  readonly input?: string | Readable;
  /** Whether it runs on a terminal. Defaults to false. */
  readonly isTty?: boolean;
  readonly signal?: AbortSignal;
  /** Called with each chunk of stdout. */
  readonly onStdout?: (text: string) => void;
  /** Called with each chunk of stderr. */
  readonly onStderr?: (text: string) => void;
}

/** Runs the `delayline` command in this process, on the shared Redis unless `url` says otherwise. */
export async function cli(argv: readonly string[], options: CliOptions = {}): Promise<CliRun> {
  const { url = redisUrl(), env = {}, input = "", isTty = false } = options;
  const { onStdout, onStderr, signal = new AbortController().signal } = options;
  const [stdout, stderr] = [gathering(isTty, onStdout), gathering(isTty, onStderr)];
  const stdin = typeof input === "string" ? Readable.from([input]) : input;
  const code = await main(argv, {
    stdin: Object.assign(stdin, { isTTY: isTty }),
    stdout: stdout.stream,
    stderr: stderr.stream,
    env: { REDIS_URL: url, ...env },
    signal,
  });
  const text = stdout.text();
  return {
    code,
    stdout: text,
    stderr: stderr.text(),
    get json() {
      return text
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    },
  };
}

function gathering(isTty: boolean, onText: (text: string) => void = () => {}) {
  const pieces: string[] = [];
  const stream = Object.assign(new PassThrough(), { isTTY: isTty, columns: 80 });
  stream.on("data", (bytes: Buffer) => {
    pieces.push(String(bytes));
    onText(String(bytes));
  });
  return { stream, text: () => pieces.join("") };
}

/** The words that run the command in a process of its own. */
export const COMMAND_WORDS = [process.execPath, inject("command")] as const;

/** The `delayline` command in a process of its own, which ends with the test at the latest. */
export class CliProcess {
  readonly ended: Promise<{
    readonly code: number | null;
    readonly stdout: string;
    readonly stderr: string;
  }>;
  readonly #child: ChildProcess;
  #stdout = "";
  #stderr = "";

  /**
   * @param options.env more environment variables; the command uses the shared Redis unless `REDIS_URL` is among them.
   * @param options.words the program to run in place of the command, which gets `argv`.
   */
  constructor(
    argv: readonly string[],
    options: {
      readonly env?: Readonly<Record<string, string>>;
      readonly stdout?: "pipe" | number;
      readonly words?: readonly [string, ...string[]];
    } = {},
  ) {
    const { env = {}, stdout = "pipe", words = COMMAND_WORDS } = options;
    const [program, ...rest] = words;
    const all = { ...process.env, REDIS_URL: redisUrl(), ...env };
    this.#child = spawn(program, [...rest, ...argv], { env: all, stdio: ["pipe", stdout, "pipe"] });
    onTestFinished(() => void this.#child.kill("SIGKILL"));
    this.#child.stdout?.on("data", (bytes) => (this.#stdout += String(bytes)));
    this.#child.stderr?.on("data", (bytes) => (this.#stderr += String(bytes)));
    this.ended = once(this.#child, "close").then(([code]) => ({
      code: code as number | null,
      stdout: this.#stdout,
      stderr: this.#stderr,
    }));
  }

  /** What it has written to stdout. */
  get stdout(): string {
    return this.#stdout;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Writes to its standard input. */
  type(text: string): void {
    this.#child.stdin?.write(text);
  }
}
