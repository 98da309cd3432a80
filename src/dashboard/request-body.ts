import { HttpError } from "./http-error.ts";

/** A change names a message and a delay: that is all that is ever sent. */
const MAX_BYTES = 16_384;

/**
 * The object that a request holds as JSON.
 *
 * @throws {HttpError} if it is too large, or none.
 */
export async function readBody(request: Request): Promise<Readonly<Record<string, unknown>>> {
  let text = "";
  let size = 0;
  const decoder = new TextDecoder();
  for await (const chunk of request.body ?? []) {
    const bytes = chunk as Uint8Array;
    size += bytes.length;
    if (size > MAX_BYTES) throw new HttpError(413, `a change has at most ${MAX_BYTES} bytes`);
    text += decoder.decode(bytes, { stream: true });
  }
  try {
    const value: unknown = JSON.parse(text + decoder.decode());
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Readonly<Record<string, unknown>>;
    }
  } catch {
    // It says where, and quotes; nobody needs that.
  }
  throw new HttpError(400, "a change has to be a JSON object");
}
