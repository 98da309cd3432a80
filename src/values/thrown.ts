/*
 * What was thrown. It may be any value: of another realm, as in Jest, where each error of Node's own modules is; an error
 * with a getter that throws; a proxy that was revoked. Reading it must never fail for the work, so whatever the
 * user's code has thrown is read here only.
 */
import { types } from "node:util";

/** Whether a value is an Error or a DOMException, of whichever realm. Never throws. */
export function isError(value: unknown): value is Error {
  if (typeof value !== "object" || value === null) return false;
  if (types.isNativeError(value)) return true;
  try {
    // A DOMException, which Node 20 does not count as one; an object made from Error.prototype.
    return (
      value instanceof Error || Object.prototype.toString.call(value) === "[object DOMException]"
    );
  } catch {
    return false;
  }
}

/** A property of what was thrown; undefined if it has none, or reading it throws. */
export function fieldOf(
  thrown: unknown,
  name: "name" | "message" | "stack" | "cause" | "code",
): unknown {
  if (typeof thrown !== "object" || thrown === null) return undefined;
  try {
    return Reflect.get(thrown, name);
  } catch {
    return undefined;
  }
}

/** A property of what was thrown that is a text; undefined if it is none. */
export function textField(
  thrown: unknown,
  name: "name" | "message" | "stack" | "code",
): string | undefined {
  const text = fieldOf(thrown, name);
  return typeof text === "string" ? text : undefined;
}

/** The text to keep of what the user's code has thrown. An error class of the user may have any `message`. */
export function textOfThrown(thrown: unknown, who = "the handler"): string {
  if (isError(thrown)) return textField(thrown, "message") || textField(thrown, "name") || "Error";
  if (typeof thrown === "string") return thrown;
  return `${who} threw ${thrown === null ? "null" : typeof thrown}`;
}
