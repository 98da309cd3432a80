// @ts-check

/**
 * The states of a message, in the order of its life.
 * - `slug`: the state's list in the address, and its colour in tokens.css
 * - `number`: the field that counts its messages in the numbers of a queue
 * - `meaning`: what it means for a message to be in it
 */
export const STATES = {
  delayed: {
    slug: "delayed",
    label: "Delayed",
    number: "delayed",
    meaning: "Waiting for its deadline.",
  },
  ready: {
    slug: "ready",
    label: "Ready",
    number: "ready",
    meaning: "Due, and not taken yet.",
  },
  "in flight": {
    slug: "in-flight",
    label: "In flight",
    number: "inFlight",
    meaning: "A consumer is handling it.",
  },
  retrying: {
    slug: "retrying",
    label: "Retrying",
    number: "retries",
    meaning: "An attempt failed. Waiting for the next one.",
  },
  dead: {
    slug: "dead",
    label: "Dead",
    number: "dead",
    meaning: "Not delivered again unless someone redrives it.",
  },
  quarantined: {
    slug: "quarantined",
    label: "Quarantined",
    number: "quarantined",
    meaning: "No consumer could read it.",
  },
};

/** The states that only one message can have, not a list. */
const ENDS = {
  handled: { slug: "handled", label: "Handled", meaning: "Acknowledged. Nothing is left to do." },
  gone: { slug: "gone", label: "Not found", meaning: "" },
};

/** What there is to say of a state, by its name. */
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
