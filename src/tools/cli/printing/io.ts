import type { Readable, Writable } from "node:stream";

/** The streams, environment and signal of a run: those of the process, or of a test. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborted by Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
}
