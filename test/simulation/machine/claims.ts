import type { Owner } from "./owner.ts";
import type { Value } from "./resp.ts";

/** A claim that a task moves messages, as a reply shows it: the key that holds it, and its instant (epoch us). */
export interface Claim {
  readonly key: string;
  readonly instant: number;
}

/** What processes have been shown of the claims in Redis: by this they can notice that Redis goes back. */
export class Claims {
  readonly #shown = new Map<Owner, (Claim & { readonly at: number })[]>();

  /** A reply has reached a process at this moment (elapsed ms). */
  note(owner: Owner, claim: Claim, at: number): void {
    const shown = this.#shown.get(owner) ?? [];
    shown.push({ ...claim, at });
    this.#shown.set(owner, shown);
  }

  /**
   * Whether the process had been shown a later claim than the one in the copy for this many milliseconds, when it last
   * heard Redis's clock. It may have heard it later than the last claim: what it certainly remembers counts.
   */
  isAhead(owner: Owner, copied: ReadonlyMap<string, number>, duration: number): boolean {
    const shown = this.#shown.get(owner) ?? [];
    const heardAt = shown.at(-1)?.at ?? -Infinity;
    return shown.some(
      ({ key, instant, at }) => at <= heardAt - duration && instant > (copied.get(key) ?? Infinity),
    );
  }
}

/** The key that a transfer claims in, among the words of the script's call; undefined if it is no transfer. */
export function claimKeyOf(script: string, words: readonly Buffer[]): string | undefined {
  if (!/^(transfer|sweep)/.test(script)) return undefined;
  return words.map(String).find(isClaimKey);
}

export function isClaimKey(key: string): boolean {
  return key.startsWith(PREFIX);
}

/** What the reply to a transfer shows of the last claim; undefined if nothing. */
export function claimIn(key: string, reply: Value): Claim | undefined {
  if (!Array.isArray(reply)) return undefined;
  const instant = Number(String(reply[CLAIMED_AT]));
  return instant > 0 ? { key, instant } : undefined;
}

/** Reads the instant of the claim that the key holds. */
export function instantOf(claim: Value): number | undefined {
  const text = Buffer.isBuffer(claim) ? claim.toString() : "";
  const instant = Number(/@(\d+)$/.exec(text)?.[1]);
  return instant > 0 ? instant : undefined;
}

const PREFIX = "delayline_mover:";

/** Its place in the reply. */
const CLAIMED_AT = 9;
