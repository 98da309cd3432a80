import type { DelaylineError } from "../errors.ts";
import type { Recovery } from "../redis/troubles.ts";

/** Prints a process warning. With what a handler threw: it is the user's own error. */
export function warn({ message, name, code, cause }: DelaylineError): void {
  const detail = code === "HANDLER" && cause instanceof Error ? cause.stack : undefined;
  process.emitWarning(message, { type: name, code, ...(detail && { detail }) });
}

/** Prints that a state of trouble is over. */
export function warnOfRecovery({ error, duration }: Recovery): void {
  process.emitWarning(`over after ${Math.round(duration)} ms: ${error.message}`, {
    type: "DelaylineWarning",
    code: "DELAYLINE_RECOVERED",
  });
}
