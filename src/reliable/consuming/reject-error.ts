/** Thrown by a handler to make its message a dead letter at once; `message` is the reason that is kept with it. */
export class RejectError extends Error {
  // A literal: a bundler may rename the class.
  override readonly name = "RejectError";
}
