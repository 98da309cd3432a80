import { brand } from "./brand.ts";

/**
 * Thrown by a codec for bytes that it cannot read. The message never quotes the bytes, so `DecodeError` can repeat it.
 */
export class UnreadableError extends SyntaxError {
  override readonly name = "UnreadableError";

  static {
    brand(this, "UnreadableError");
  }
}
