// @ts-check
import { NUMBERS, PLACES } from "./tables.js";

/** The order of the numbers that count the messages in each place: that of a message's life. */
const ORDER = Object.keys(NUMBERS);

/**
 * The states of a message, in the order of its life.
 * - `slug`: the state's list in the address, and its colour in tokens.css
 * - `number`: the field that counts its messages in the numbers of a queue
 * - `meaning`: what it means for a message to be in it
 * - `order`: in which order its list is
 * - `verbs`: what can be done with it
 */
export const STATES = Object.fromEntries(
  Object.entries(PLACES)
    .map(
      ([name, place]) => /** @type {const} */ ([name, { ...place, slug: name.replace(" ", "-") }]),
    )
    .toSorted(([, a], [, b]) => ORDER.indexOf(a.number) - ORDER.indexOf(b.number)),
);

/** The states that only one message can have, not a list. */
const ENDS = {
  handled: { slug: "handled", label: "Handled", meaning: "Acknowledged. Nothing is left to do." },
  dropped: {
    slug: "dropped",
    label: "Dropped",
    meaning: "It was due, and was not to be delivered any more.",
  },
  gone: { slug: "gone", label: "Not found", meaning: "" },
};

/**
 * What there is to say of a state, by its name.
 *
 * @returns {{ slug: string, label: string, meaning: string, number?: string, order?: string, verbs?: readonly string[] }}
 */
export function stateOf(name) {
  return STATES[name] ?? ENDS[name] ?? { slug: "gone", label: name, meaning: "" };
}

/** The name of the state whose list has this slug. */
export function stateAt(slug) {
  return Object.keys(STATES).find((name) => STATES[name].slug === slug);
}

/** The number of a queue that counts a state's messages, and the state's slug. */
export const STATE_OF_NUMBER = Object.fromEntries(
  Object.values(STATES).map(({ number, slug }) => [number, slug]),
);
