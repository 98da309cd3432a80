/** What `makePlain` has come to. */
export interface PlainResult {
  /** Whether the queue is plain now. If not, the other numbers say what is in the way. */
  readonly isPlain: boolean;
  /** How many consumers of the stream live. */
  readonly consumers: number;
  /** How many messages are still in the stream. */
  readonly ready: number;
  /** How many messages were moved, ready and retrying ones. */
  readonly moved: number;
}
