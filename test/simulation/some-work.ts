import type { Clerk } from "./clerk.ts";
import type { Shop } from "./shop.ts";
import type { Sim } from "./sim.ts";

/** Offers some messages, of which many share partition keys, and cancels or reschedules some of them. */
export async function someWork(
  shop: Shop,
  clerk: Clerk,
  {
    most = 12,
    longest = 3000,
    moves = true,
    keys = 3,
    lanes = [],
  }: {
    readonly most?: number;
    readonly longest?: number;
    readonly moves?: boolean;
    readonly keys?: number;
    /** The lanes of the messages; without any they have none, nor a priority. */
    readonly lanes?: readonly string[];
  } = {},
): Promise<void> {
  const { sim } = shop;
  const { random } = sim;
  const known: { readonly target: string; readonly partitionKey: string }[] = [];
  const count = random.between(4, most);
  for (let i = 0; i < count; i++) {
    const verb = random.weighted({
      offer: 7,
      many: 2,
      cancel: 2,
      reschedule: moves ? 1 : 0,
      get: 1,
    });
    const partitionKey = `p${random.int(keys)}`;
    const hasKey = random.chance(0.5);
    const delay = random.pick([0, 0, 20, random.between(1, longest)]);
    const size = random.between(2, 4);
    const isImpatient = random.chance(0.3);
    const patience = random.magnitude(0.05, 20);
    const pause = random.pick([0, 1, 50, 400, 1500]);
    const ofLane = () => (lanes.length === 0 ? {} : laneTerms(sim, lanes));
    const turn: { lane?: string } = ofLane();
    const chosen = known.length === 0 ? undefined : random.pick(known);
    if (!sim.wants()) continue;
    if (verb === "many") {
      const all = Array.from({ length: size }, (_, n) =>
        atHome(`p${n % 3}`, { delay, ...ofLane() }),
      );
      const results = await clerk.offerMany(all, isImpatient ? patience : undefined);
      for (const [n, { id }] of results.entries())
        known.push({ target: id, partitionKey: all[n]?.partitionKey ?? "" });
    } else if (verb === "offer" || chosen === undefined) {
      const key = `${clerk.process.name}-${i}`;
      const terms = atHome(partitionKey, { ...(hasKey && { key }), ...turn });
      const result = await clerk.offer(delay, terms);
      if (result !== undefined)
        known.push({ target: hasKey ? key : result.id, partitionKey: terms.partitionKey });
    } else if (verb === "cancel") await clerk.cancel(chosen.target, chosen.partitionKey);
    else if (verb === "get") await clerk.get(chosen.target);
    else await clerk.reschedule(chosen.target, delay, chosen.partitionKey);
    if (pause > 0) await sim.sleep(pause);
  }
}

/** The terms of an offer with a partition key: its lane, if it has one. */
function atHome<Terms extends { readonly lane?: string }>(partitionKey: string, terms: Terms) {
  return { ...terms, partitionKey: terms.lane ?? partitionKey };
}

/** A lane, of which "" is none, and a priority or none. */
function laneTerms({ random }: Sim, lanes: readonly string[]) {
  const lane = random.pick(lanes);
  const priority = random.pick([-10, 0, 0, 0, 10]);
  return { ...(lane !== "" && { lane }), ...(priority !== 0 && { priority }) };
}
