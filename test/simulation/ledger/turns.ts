import { copiesOf, nameOf, type Rule } from "./promises.ts";
import type { Offer, Story } from "./story.ts";

/**
 * **Offers arrive in the order in which they were made**: of two offers of one process with the same delay, the later
 * one is due no earlier. A step of the clock may turn that round, and so may `SCRIPT FLUSH` while another process offers:
 * see "The order of offers" in docs/project/internals/message.md.
 */
export const inTurn: Rule = (story, { areOffersInTurn = false }) => {
  if (!areOffersInTurn || story.faults.some(({ kind }) => kind === "clock-step")) return [];
  const violations: string[] = [];
  const last = new Map<string, Offer>();
  for (const offer of story.offers.values()) {
    const { delay, maxWait } = offer.args as { delay?: number; maxWait?: number };
    if (delay === undefined || maxWait !== undefined || offer.outcome !== "added") continue;
    if (offer.deadline === undefined || copiesOf(offer, story) > 1) continue;
    const name = `${offer.by} ${delay}`;
    const before = last.get(name);
    last.set(name, offer);
    if (before?.deadline === undefined || before.deadline <= offer.deadline) continue;
    if (mayHaveMetAnothersScript(before, offer, story)) continue;
    violations.push(`out of turn: ${nameOf(offer)} arrived before ${nameOf(before)}`);
  }
  return violations;
};

/** Whether Redis may have refused the first offer, been sent the script by another process, and run the second one. */
function mayHaveMetAnothersScript(first: Offer, second: Offer, story: Story): boolean {
  const until = first.ended?.index ?? Infinity;
  const flush = story.faults.find(({ kind }) => kind === "script-flush")?.index ?? Infinity;
  if (second.begun.index > until || flush > until) return false;
  return [...story.offers.values()].some(
    ({ by, begun, ended }) =>
      by !== first.by && begun.index < until && (ended?.index ?? Infinity) > flush,
  );
}
