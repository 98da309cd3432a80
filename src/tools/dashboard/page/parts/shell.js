// @ts-check
import { createContext, h, useContext } from "../../vendor/preact-htm.js";

// Shared by all pages: the session, the dialog that confirms changes, and the line that reports results.

const Context = createContext(undefined);

/** Provides `value` to all components below: `{ session, ask, say }`. */
export function Shell({ value, children }) {
  // oxlint-disable-next-line typescript/unbound-method -- Provider is a component, not a method.
  return h(Context.Provider, { value }, children);
}

/**
 * - `session`: `{ readOnly, payloads, where, version }`, where `where` says which Redis
 * - `ask(question)`: opens the dialog; see dialog.js
 * - `say(text)`: shows and announces a result
 */
export function useShell() {
  return useContext(Context);
}
