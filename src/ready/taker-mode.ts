/** The modes of a taker, each with the modes that may follow it; {@link Taker} describes them. */
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

/** A mode of a taker. */
export type TakerMode = keyof typeof NEXT;

/**
 * Checks a transition; throws if it is illegal, which means that the taker has a bug.
 *
 * In production this is a failed step like any other: the taker reports it and recovers. It must not cost a message, so
 * a mode is never entered while only the caller's variables hold messages.
 */
export function checkFollows(from: TakerMode, to: TakerMode): void {
  const next: readonly TakerMode[] = NEXT[from];
  if (!next.includes(to)) throw new Error(`${from} must not be followed by ${to}`);
}
