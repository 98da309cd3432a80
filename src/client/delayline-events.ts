import type { AnyDelaylineError } from "../errors.ts";
import type { Recovery } from "../redis/troubles.ts";

/** The events of a {@link Delayline}. */
export interface DelaylineEvents {
  /**
   * Something failed that nobody awaits: a transfer, a wait for messages, a handler, a message that
   * cannot be read. No error ends the work: what can be tried again is.
   *
   * What lasts is reported once, when it begins: that Redis cannot be reached, once for the whole client;
   * what Redis refuses, once for each work on each queue, and again if the reason changes. Handlers that
   * fail and messages that cannot be read are reported each time.
   *
   * With no listener the error becomes a process warning (`process.on("warning")`, printed on stderr
   * by default), so it is neither lost nor does it end the process.
   */
  error: [error: AnyDelaylineError];
  /**
   * What was reported as an error and has lasted is over: once for each such state.
   *
   * Where nobody listens to `error` or to this, it becomes a process warning, too.
   */
  recovered: [recovery: Recovery];
}
