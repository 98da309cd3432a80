import { Clerk } from "./clerk.ts";
import { Story } from "./ledger/story.ts";
import type { Offer } from "./ledger/story.ts";
import type { Shop } from "./shop.ts";

/**
 * Revokes a few messages, by id and by key, some of them while their handlers run or after they have failed; looks at others.
 * Does nothing in a plain queue.
 */
export async function revokeSome(shop: Shop, clerk: Clerk, most = 8): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  if (!("revoke" in clerk.queue)) return;
  await sim.go(`${clerk.process.name} revokes`, clerk.process, async () => {
    for (let i = random.between(1, most); i > 0; i--) {
      const pause = random.magnitude(1, 1500);
      const kind = random.pick(["any", "running", "running", "failed"] as const);
      const verb = random.weighted({ revoke: 4, stage: 1 });
      const byKey = random.chance(0.4);
      const hasHint = random.chance(0.5);
      const wait = random.pick([0, 0, 50, 3000]);
      const which = random.next();
      await sim.sleep(pause);
      if (!sim.wants()) continue;
      const offer = chosen(shop, kind, which);
      if (offer?.id === undefined) continue;
      const target = byKey ? (offer.key ?? offer.id) : offer.id;
      const hint = hasHint ? (offer.args["partitionKey"] as string | undefined) : undefined;
      if (verb === "stage") await clerk.stage(target, hint);
      else {
        // A call whose answer is lost may have had an effect: whoever asks again knows.
        const isDone = await clerk.revoke(target, wait, hint);
        if (!isDone && random.chance(0.7)) await clerk.revoke(target, wait, hint);
      }
    }
  });
}

/** A message that was offered: any, one that runs, or one whose last attempt has failed. */
function chosen(
  { sim, queue }: Shop,
  kind: "any" | "running" | "failed",
  which: number,
): Offer | undefined {
  const story = new Story(sim.history, queue);
  const offers = [...story.offers.values()].filter(({ fate }) => fate === "stored");
  const last = (offer: Offer) => story.deliveriesOf(offer.n).at(-1);
  const wanted = offers.filter((offer) => {
    const delivery = last(offer);
    if (delivery === undefined) return kind === "any";
    const { end, settlements } = delivery;
    if (kind === "running") return end === undefined && settlements.length === 0;
    if (kind === "any") return true;
    return end?.how === "threw" || settlements.some(({ verb }) => verb === "nack");
  });
  const all = wanted.length > 0 ? wanted : offers;
  return all[Math.floor(which * all.length)];
}
