/** The modes of a state machine, each with the modes that may follow it. */
export type Modes<Mode extends string> = Readonly<Record<Mode, readonly Mode[]>>;

/** Checks a transition; throws if it is illegal, which means that the state machine or its owner has a bug. */
export function checkFollows<Mode extends string>(next: Modes<Mode>, from: Mode, to: Mode): void {
  if (!next[from].includes(to)) throw new Error(`${from} must not be followed by ${to}`);
}
