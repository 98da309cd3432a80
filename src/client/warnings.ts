import { isError, textField } from "../values/thrown.ts";
import type { DelaylineError } from "../errors.ts";
import type { RestoredEvent } from "../observe/events.ts";
import type { RecoveredEvent } from "../redis/troubles.ts";

/** Emits a process warning for an error. It shows the stack of what a handler threw, which is the user's own error. */
export function warn({ message, name, code, cause }: DelaylineError): void {
  const detail = code === "HANDLER" && isError(cause) ? textField(cause, "stack") : undefined;
  process.emitWarning(message, { type: name, code, ...(detail && { detail }) });
}

/** Emits a process warning for a state of trouble that is over. */
export function warnOfRecovery({ error, duration }: RecoveredEvent): void {
  process.emitWarning(`over after ${Math.round(duration)} ms: ${error.message}`, {
    type: "DelaylineWarning",
    code: "DELAYLINE_RECOVERED",
  });
}

/** Emits a process warning for a Redis that went back to an older copy. */
export function warnOfRestore(fallBack: RestoredEvent): void {
  process.emitWarning(describeFallBack(fallBack), {
    type: "DelaylineWarning",
    code: "DELAYLINE_RESTORED",
  });
}

/** Says in words that Redis went back to an older copy. */
export function describeFallBack({ knownAt, foundAt }: Pick<RestoredEvent, "knownAt" | "foundAt">) {
  const to = foundAt === undefined ? "an older copy" : `a copy of ${instant(foundAt)}`;
  return `Redis went back from ${instant(knownAt)} to ${to}: messages that were handled or cancelled since then come again`;
}

function instant(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+/, "");
}
