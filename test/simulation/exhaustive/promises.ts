import type { Message } from "../../helpers/moves.ts";
import { keys } from "./clients.ts";
import { type Reached } from "./explore.ts";
import { countIn, disagreement, placesIn, type Places } from "./places.ts";
import type { Event } from "./program.ts";

/* What has to be true. */

export const allEvents = ({ events }: Reached) => Object.values(events).flat();
export const about = (events: readonly Event[], what: string) =>
  events.filter(([one]) => one === what).map(([, ...rest]) => rest);

/** Where each message is, and how often it was taken. */
function copiesOf(state: Reached, places: Places): Map<string, number> {
  const events = allEvents(state);
  const took = about(events, "took").map(String);
  return countIn([places], ({ delayed, ready }) => [
    ...delayed.map(({ payload }) => payload),
    ...ready,
    ...took,
  ]);
}

/**
 * Each message is delayed, ready or taken once; or it was cancelled or replaced. Messages of one key are counted
 * together, since a verdict names the key.
 */
export function checkPlaces(seeded: readonly Message[]) {
  return (state: Reached): string | undefined => {
    const places = placesIn(state.database, keys);
    const events = allEvents(state);
    const copies = copiesOf(state, places);
    for (const [payload, count] of copies) {
      if (count > 1 && !state.repeated.includes(payload))
        return `${payload} is there ${count} times`;
    }
    const offered = about(events, "offered");
    for (const [payload, outcome] of offered) {
      if (outcome === "existing" && copies.has(String(payload)) && state.repeated.length === 0)
        return `${payload} was rejected, and is there`;
    }
    const sum = [...copies.values()].reduce((total, count) => total + count, 0);
    const cancelled = about(events, "cancelled");
    const gone =
      cancelled.filter(([, flag]) => flag === true).length +
      offered.filter(([, outcome]) => outcome === "replaced" || outcome === "updated").length;
    const stored = seeded.length + offered.filter(([, outcome]) => outcome !== "existing").length;
    const open = about(events, "offers").length - offered.length;
    const unknown = cancelled.filter(([, flag]) => flag === "unknown").length;
    // Between a pop and the reply to the give-back only the process knows where a message is.
    const inHand = about(events, "holds").length - about(events, "gave back").length;
    if (sum + gone < stored - unknown - open - inHand)
      return `of ${stored} messages ${sum + gone} are left`;
    if (sum + gone > stored + open + state.repeated.length)
      return `of ${stored} messages ${sum + gone} are there`;
    const { order } = places;
    const isTwice = places.delayed.some(
      ({ address }) => order.indexOf(address) !== order.lastIndexOf(address),
    );
    if (isTwice && state.repeated.length === 0) return "a message is twice in the insertion order";
    return disagreement(places);
  };
}

/** After the drain nothing is left over. */
export function checkNothingLeft({ database }: Reached): string | undefined {
  // Which task has moved, and the receipts of processes that died, are left for some time.
  const left = [...database.keys()].filter((key) => key !== keys.mover && key !== keys.receipts);
  return left.length > 0 ? `left over: ${left.join(", ")}` : undefined;
}

export function both(...checks: readonly ((state: Reached) => string | undefined)[]) {
  return (state: Reached): string | undefined => {
    for (const check of checks) {
      const wrong = check(state);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  };
}

/** A message that was there before the calls began: a verdict of false says that it is not delayed any more. */
export const checkVerdicts =
  (...seeded: readonly Message[]) =>
  (state: Reached): string | undefined => {
    const { delayed } = placesIn(state.database, keys);
    for (const one of seeded) {
      const isDelayed = delayed.some(({ payload }) => payload === one.payload);
      for (const [what, named, verdict] of allEvents(state)) {
        if (named !== one.payload && named !== one.key) continue;
        if (what === "cancelled" && verdict !== "unknown" && isDelayed)
          return `${one.payload} is delayed, though cancel said ${verdict}`;
        if (what === "rescheduled" && verdict === false && isDelayed)
          return `${one.payload} is delayed, though reschedule found nothing`;
      }
    }
    return undefined;
  };

/** Nothing is moved before its deadline on the server's clock. */
export const checkNotEarly =
  (...deadlines: readonly (readonly [Message, number])[]) =>
  (state: Reached): string | undefined => {
    const { ready } = placesIn(state.database, keys);
    for (const [{ payload }, deadline] of deadlines) {
      const isOut =
        ready.includes(payload) || about(allEvents(state), "took").flat().includes(payload);
      if (isOut && state.instant < deadline) return `${payload} is early`;
    }
    return undefined;
  };

/** Messages with one deadline become ready in the order in which they were offered. */
export const checkOrder =
  (...order: readonly string[]) =>
  (state: Reached): string | undefined => {
    const { ready } = placesIn(state.database, keys);
    const ranks = ready.map((payload) => order.indexOf(payload));
    return ranks.some((rank, i) => i > 0 && rank <= (ranks[i - 1] ?? -1))
      ? `ready as ${ready.join(", ")}`
      : undefined;
  };
