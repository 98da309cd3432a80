import { hasPlainPrototype } from "../../codecs/plain-data.ts";

/** Data that a message carries beside its payload, such as a `traceparent`. */
export type MessageHeaders = Readonly<Record<string, string>>;

/**
 * Checks the headers of an offer and copies them, since the caller may change its object before they are sent. Returns
 * undefined if there are none.
 *
 * @throws {TypeError | RangeError} naming the header and the rule, but never the header's value.
 */
export function checkedHeaders(value: unknown): MessageHeaders | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "object" || value === null || !hasPlainPrototype(value)) {
    throw new TypeError(`headers must be a plain object of strings, got ${kindOf(value)}`);
  }
  const headers = Object.entries(value);
  if (headers.length === 0) return undefined;
  if (headers.length > MAX_COUNT) {
    throw new RangeError(`headers must be at most ${MAX_COUNT}, got ${headers.length}`);
  }
  for (const [name, text] of headers) checkHeader(name, text);
  const copy = Object.fromEntries(headers) as MessageHeaders;
  const bytes = headersBytes(copy);
  if (bytes > MAX_BYTES) {
    throw new RangeError(
      `headers must have at most ${MAX_BYTES} bytes of UTF-8, names and values together, got ${bytes}`,
    );
  }
  return copy;
}

/** The size of the names and values, in bytes of UTF-8. */
export function headersBytes(headers: MessageHeaders): number {
  let bytes = 0;
  for (const [name, text] of Object.entries(headers)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(text);
  }
  return bytes;
}

function checkHeader(name: string, text: unknown): void {
  if (!name.isWellFormed()) throw new TypeError("the name of a header must be well-formed Unicode");
  const bytes = Buffer.byteLength(name);
  if (bytes === 0 || bytes > MAX_NAME_BYTES) {
    throw new RangeError(
      `the name of a header must have 1 to ${MAX_NAME_BYTES} bytes of UTF-8, got ${bytes}`,
    );
  }
  const header = `header ${JSON.stringify(name)}`;
  if (typeof text !== "string")
    throw new TypeError(`${header} must be a string, got ${kindOf(text)}`);
  if (!text.isWellFormed()) throw new TypeError(`${header} must be well-formed Unicode`);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" && !hasPlainPrototype(value)
    ? "an instance of a class"
    : typeof value;
}

const MAX_COUNT = 64;
const MAX_NAME_BYTES = 200;

// Headers are stored with every message. Larger data belongs in the payload.
const MAX_BYTES = 8_192;
