/** Only what this dashboard serves itself is run, shown and connected to. No inline script, no frame around it, no form. */
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

/** What every response says, whatever is in it. */
const SAFE = {
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** A response. It may not be stored, unless its headers say otherwise. */
export function reply(
  body: string | ReadableStream<Uint8Array> | null,
  status: number,
  headers: Readonly<Record<string, string>>,
): Response {
  return new Response(body, {
    status,
    headers: { "cache-control": "no-store", ...SAFE, ...headers },
  });
}

/** What is asked for, as JSON. What is undefined or no number is null. */
export function replyJson(value: unknown, status = 200): Response {
  return reply(asJson(value), status, { "content-type": "application/json; charset=utf-8" });
}

/** Why it was not done. */
export function replyError(
  status: number,
  error: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const type = { "content-type": "application/json; charset=utf-8" };
  return reply(asJson({ error }), status, { ...type, ...headers });
}

/** JSON in which what is undefined is null, so that each field is always there. */
export function asJson(value: unknown): string {
  return JSON.stringify(value, (_, field: unknown) => (field === undefined ? null : field));
}
