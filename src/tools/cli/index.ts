#!/usr/bin/env node
import { main } from "./main.ts";
import { EXIT } from "./session/exit.ts";

// The `delayline` command. The first Ctrl-C or SIGTERM lets it finish cleanly; the second kills it.

const interrupt = new AbortController();
process.once("SIGINT", () => interrupt.abort());
let isTerminated = false;
process.once("SIGTERM", () => {
  isTerminated = true;
  interrupt.abort();
});
// A reader such as `head` closes the pipe once it has read enough.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(EXIT.done);
  process.stderr.write(`delayline: cannot write to stdout: ${error.code ?? error.message}\n`);
  process.exit(EXIT.output);
});
// In `delayline stats 2>&1 | head` it closes the pipe of the messages, too.
process.stderr.on("error", () => {});

const { stdin, stdout, stderr, env } = process;
const code = await main(process.argv.slice(2), {
  stdin,
  stdout,
  stderr,
  env,
  signal: interrupt.signal,
});
process.exitCode = code === EXIT.interrupted && isTerminated ? EXIT.terminated : code;
