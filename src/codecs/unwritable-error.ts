/**
 * A codec's own words for what it cannot write: where in the payload, and what kind of thing. They quote
 * no value, so that `EncodeError` can repeat them.
 */
export class UnwritableError extends TypeError {
  override readonly name = "UnwritableError";
}
