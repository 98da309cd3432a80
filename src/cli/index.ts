#!/usr/bin/env node
import { EXIT } from "./command/exit-code.ts";
import { main } from "./main.ts";

// The `delayline` command. The first Ctrl-C ends it in good order, the second at once.

const interrupt = new AbortController();
process.once("SIGINT", () => interrupt.abort());
let isTerminated = false;
process.once("SIGTERM", () => {
  isTerminated = true;
  interrupt.abort();
});
// Whoever reads, such as `head`, has had enough.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(EXIT.done);
});

const { stdin, stdout, stderr, env } = process;
const code = await main(process.argv.slice(2), {
  stdin,
  stdout,
  stderr,
  env,
  signal: interrupt.signal,
});
process.exitCode = code === EXIT.interrupted && isTerminated ? EXIT.terminated : code;
