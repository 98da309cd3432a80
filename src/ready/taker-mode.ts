/** The modes of a taker, and which may follow each; its docstring says what they mean. */
const NEXT = {
  idle: ["gathering", "closed"],
  gathering: ["idle", "connecting", "paused", "popping", "blocking", "recovering"],
  connecting: ["gathering", "recovering"],
  paused: ["gathering"],
  popping: ["gathering", "giving back", "recovering"],
  blocking: ["gathering", "unblocking", "recovering"],
  unblocking: ["gathering", "blocking", "giving back", "recovering"],
  "giving back": ["gathering", "recovering"],
  recovering: ["gathering"],
  closed: [],
} as const;

export type TakerMode = keyof typeof NEXT;

/**
 * Checks a transition.
 *
 * An illegal one is a mistake in the taker, and throws. In production that is a step that fails like any
 * other: it is reported, and the taker recovers. It must not cost a message, so no mode is entered while
 * messages are held only by the caller.
 */
export function checkFollows(from: TakerMode, to: TakerMode): void {
  const next: readonly TakerMode[] = NEXT[from];
  if (!next.includes(to)) throw new Error(`${from} must not be followed by ${to}`);
}
