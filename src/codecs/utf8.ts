import { UnreadableError } from "./unreadable-error.ts";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Decodes UTF-8. Invalid bytes are an error, not a replacement character, so that a wrong codec is noticed at once.
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
