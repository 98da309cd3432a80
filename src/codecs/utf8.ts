import { UnreadableError } from "./unreadable-error.ts";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Text from its UTF-8. Invalid bytes are an error, not a replacement character: a wrong codec shows at
 * once.
 *
 * @throws {UnreadableError} if the bytes are not UTF-8.
 */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new UnreadableError("the bytes are not UTF-8");
  }
}
