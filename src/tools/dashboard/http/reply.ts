/** Allows what the dashboard itself serves, and nothing else: no inline scripts, no embedding in frames, no forms. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Headers of every response. */
const SECURITY_HEADERS = {
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** Makes a response with the security headers. It may not be stored, unless `headers` says otherwise. */
export function reply(
  body: string | ReadableStream<Uint8Array> | null,
  status: number,
  headers: Readonly<Record<string, string>>,
): Response {
  return new Response(body, {
    status,
    headers: { "cache-control": "no-store", ...SECURITY_HEADERS, ...headers },
  });
}

/** Replies with a value as JSON; see {@link asJson}. */
export function replyJson(value: unknown, status = 200): Response {
  return reply(asJson(value), status, { "content-type": "application/json; charset=utf-8" });
}

/** Replies with an error text. */
export function replyError(
  status: number,
  error: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const type = { "content-type": "application/json; charset=utf-8" };
  return reply(asJson({ error }), status, { ...type, ...headers });
}

/** Writes JSON. Undefined fields become null, so every field is always present; so do NaN and infinite numbers. */
export function asJson(value: unknown): string {
  return JSON.stringify(value, (_, field: unknown) => (field === undefined ? null : field));
}

/** Refuses a request with an HTTP status. The message goes to the client. */
export class HttpError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
