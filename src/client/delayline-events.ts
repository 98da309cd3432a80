import type { AnyDelaylineError } from "../errors.ts";
import type { RestoredEvent } from "../observe/events.ts";
import type { RecoveredEvent } from "../redis/troubles.ts";

/** The events of a `Delayline`. A listener of another name is refused with a `TypeError`: it would wait for ever. */
export interface DelaylineEvents {
  /**
   * Something failed that no caller awaits: a transfer, a wait for messages, a handler, the decoding of a message. No
   * error ends a background task: it tries again where that makes sense.
   *
   * A lasting state is reported once, when it begins. An unreachable Redis is one state of the whole client. A refusal
   * by Redis is a state of one task of one queue, and is reported again if the reason changes. Failed handlers and
   * undecodable messages are reported each time.
   *
   * Without a listener, the error becomes a process warning (`process.on("warning")`, printed on stderr by default):
   * it is not lost, and it does not end the process.
   */
  error: [error: AnyDelaylineError];
  /**
   * A lasting state that was reported as an error is over. Emitted once for each such state.
   *
   * A refusal is also over when this process stops trying: it stands by, or a subscription was closed. The end
   * of the client is not reported.
   *
   * Without a listener for this event or for `error`, it becomes a process warning.
   */
  recovered: [recovery: RecoveredEvent];
  /**
   * Redis went back to an older copy of its data, such as a restored backup. Emitted once for each time and server (on a
   * Cluster: for each queue that shows it), after the connection was lost and before anything is moved or taken again. See
   * the option `onRestore`.
   *
   * Without a listener for this event or for `error`, it becomes a process warning.
   */
  restored: [fallBack: RestoredEvent];
}
