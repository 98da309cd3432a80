import { createContext, useContext } from "../vendor/preact-htm.js";

// What every page has: the session, the dialog that asks before a change, and the line that says what happened.

/** `{ session, ask, say }`. */
export const Shell = createContext(undefined);

/**
 * - `session`: `{ readOnly, payloads, version }`
 * - `ask(question)`: opens the dialog; see dialog.js
 * - `say(text)`: shows and announces what happened
 */
export function useShell() {
  return useContext(Shell);
}
