// @ts-check
import { createContext, h, useContext } from "../../vendor/preact-htm.js";

// What every page has: the session, the dialog that asks before a change, and the line that says what happened.

const Context = createContext(undefined);

/** Gives `value` to all pages: `{ session, ask, say }`. */
export function Shell({ value, children }) {
  // oxlint-disable-next-line typescript/unbound-method -- Preact makes a component of it.
  return h(Context.Provider, { value }, children);
}

/**
 * - `session`: `{ readOnly, payloads, version }`
 * - `ask(question)`: opens the dialog; see dialog.js
 * - `say(text)`: shows and announces what happened
 */
export function useShell() {
  return useContext(Context);
}
