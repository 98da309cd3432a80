import { PassThrough, Readable } from "node:stream";
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
