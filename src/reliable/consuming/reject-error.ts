/** Throw it in a handler to make the message a dead letter at once. `message` becomes the dead letter's reason. */
export class RejectError extends Error {
  // A literal, since bundlers may rename the class.
  override readonly name = "RejectError";
}
