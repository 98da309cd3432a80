import { HttpError } from "./http-error.ts";

/** A change names a message and a delay: that is all that is ever sent. */
const MAX_BYTES = 16_384;

/** For how long a body may take to come (ms). */
const PATIENCE = 10_000;

/**
 * The object that a request holds as JSON.
 *
 * @throws {HttpError} if it is too large or none, or takes longer than `patience` (ms).
 */
export async function readBody(
  request: Request,
  patience = PATIENCE,
): Promise<Readonly<Record<string, unknown>>> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new HttpError(408, `a change has to come within ${patience / 1000} s`);
    timer = setTimeout(() => reject(error), patience);
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
      if (size > MAX_BYTES) throw new HttpError(413, `a change has at most ${MAX_BYTES} bytes`);
      text += decoder.decode(value, { stream: true });
    }
  } catch (error) {
    // Nobody reads the rest.
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
    // It says where, and quotes; nobody needs that.
  }
  throw new HttpError(400, "a change has to be a JSON object");
}
