import { HttpError } from "./http-error.ts";

/** Ample: a change holds only a message id and a delay. */
const MAX_BYTES = 16_384;

/** How long a body may take to arrive (ms). */
const TIMEOUT = 10_000;

/**
 * Reads a request's body, a JSON object, within `timeout` milliseconds.
 *
 * @throws {HttpError} 400 if it is not a JSON object, 408 if it takes too long, 413 if it is too large.
 */
export async function readBody(
  request: Request,
  timeout = TIMEOUT,
): Promise<Readonly<Record<string, unknown>>> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new HttpError(408, `the body has to arrive within ${timeout / 1000} s`);
    timer = setTimeout(() => reject(error), timeout);
  });
  try {
    return parse(await readText(request, late));
  } finally {
    clearTimeout(timer);
  }
}

async function readText({ body }: Request, late: Promise<never>): Promise<string> {
  let text = "";
  let size = 0;
  const decoder = new TextDecoder();
  const reader = body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    for (;;) {
      const { value } = (await Promise.race([reader?.read(), late])) ?? {};
      if (value === undefined) return text + decoder.decode();
      size += value.length;
      if (size > MAX_BYTES)
        throw new HttpError(413, `the body may have at most ${MAX_BYTES} bytes`);
      text += decoder.decode(value, { stream: true });
    }
  } catch (error) {
    void reader?.cancel().catch(() => {});
    throw error;
  }
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Readonly<Record<string, unknown>>;
    }
  } catch {
    // The error below is enough: a SyntaxError would quote the body.
  }
  throw new HttpError(400, "the body has to be a JSON object");
}
