import { brand } from "./brand.ts";

/**
 * Thrown by a codec for a value that it cannot write. The message names the value's path in the payload and its kind,
 * but never quotes it, so `EncodeError` can repeat the message.
 */
export class UnwritableError extends TypeError {
  override readonly name = "UnwritableError";

  static {
    brand(this, "UnwritableError");
  }
}
