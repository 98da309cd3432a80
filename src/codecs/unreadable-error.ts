/**
 * A codec's own words for bytes that it cannot read. They quote nothing of the bytes, so that
 * `DecodeError` can repeat them.
 */
export class UnreadableError extends SyntaxError {
  override readonly name = "UnreadableError";
}
