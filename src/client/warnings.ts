import type { DelaylineError } from "../errors.ts";
import type { Recovery } from "../redis/troubles.ts";

/** Emits a process warning for an error. It shows the stack of what a handler threw, which is the user's own error. */
export function warn({ message, name, code, cause }: DelaylineError): void {
  const detail = code === "HANDLER" && cause instanceof Error ? cause.stack : undefined;
  process.emitWarning(message, { type: name, code, ...(detail && { detail }) });
}

/** Emits a process warning for a state of trouble that is over. */
export function warnOfRecovery({ error, duration }: Recovery): void {
  process.emitWarning(`over after ${Math.round(duration)} ms: ${error.message}`, {
    type: "DelaylineWarning",
    code: "DELAYLINE_RECOVERED",
  });
}
