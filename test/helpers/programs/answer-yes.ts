import { Readable } from "node:stream";
import { main } from "../../../src/tools/cli/main.ts";

// The `delayline` command, for a person at a terminal who answers yes to every question.

const { stdout, stderr, env } = process;
process.exitCode = await main(process.argv.slice(2), {
  stdin: Object.assign(Readable.from(["y\n"]), { isTTY: true }),
  stdout,
  stderr,
  env,
  signal: new AbortController().signal,
});
