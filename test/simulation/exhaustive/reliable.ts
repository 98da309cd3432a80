import { failuresIn } from "../../../src/queue/message/trailer.ts";
import type { Message } from "../../helpers/moves.ts";
import { cancels, inTurn, keys, moves, offers, plainly } from "./clients.ts";
import {
  consumes,
  drainsGroups,
  GROUP,
  makesPlain,
  opens,
  pushes,
  reclaims,
  redrives,
  takesOver,
} from "./deliveries.ts";
import { NOW, type Reached, type World } from "./explore.ts";
import { disagreement, placesIn } from "./places.ts";
import type { Program } from "./program.ts";
import { about, allEvents, both } from "./promises.ts";

// Worlds of a reliable queue.

/**
 * For each group a message is in one place, and leaves it once: acknowledged, cancelled or replaced. If a reply to a
 * settlement was lost, it may have been carried out.
 */
export const checkGroups =
  (messages: readonly Message[], groups: readonly string[] = [GROUP]) =>
  (state: Reached): string | undefined => {
    const places = placesIn(state.database, keys);
    const events = allEvents(state);
    const cancelled = about(events, "cancelled");
    const offered = about(events, "offered");
    for (const group of groups) {
      let [sum, most, least] = [0, 0, 0];
      for (const { payload } of messages) {
        const count = <One extends { readonly payload: string }>(
          all: readonly One[],
          isOf: (one: One) => boolean = () => true,
        ) => all.filter((one) => one.payload === payload && isOf(one)).length;
        const of = (one: { readonly group: string }) => one.group === group;
        const there =
          count(places.delayed) +
          places.ready.filter((one) => one === payload).length +
          count(places.entries, ({ needed }) => needed.some(of)) +
          count(places.retries, of) +
          count(places.dead, of);
        const own = (what: string) =>
          about(events, what).filter(([g, p]) => g === group && p === payload);
        const acked = own("settled").filter(([, , ending, flag]) => ending === "ack" && flag);
        const copies = there + acked.length;
        if (copies > 1 && !state.repeated.includes(payload))
          return `${payload} is there ${copies} times for ${group}`;
        sum += copies;
        const outcome = offered.find(([p]) => p === payload)?.[1];
        const isOpen =
          about(events, "offers").some(([p]) => p === payload) && outcome === undefined;
        most += outcome === "existing" ? 0 : 1;
        const mayBeAcked = own("asks again").length > 0;
        least += outcome === "existing" || isOpen || mayBeAcked ? 0 : 1;
      }
      const isOpen = about(events, "offers").length > offered.length;
      const gone =
        cancelled.filter(([, flag]) => flag === true).length +
        offered.filter(([, outcome]) => outcome === "replaced" || outcome === "updated").length;
      const unknown = cancelled.filter(([, flag]) => flag === "unknown").length + (isOpen ? 1 : 0);
      if (sum + gone > most + state.repeated.length) return `${sum + gone} of ${most} for ${group}`;
      if (sum + gone + unknown < least) return `only ${sum + gone} of ${least} for ${group}`;
    }
    return undefined;
  };

/** A message's attempt is always one more than the number of its failures. */
export function checkAttempts(state: Reached): string | undefined {
  const { entries, retries } = placesIn(state.database, keys);
  // A redrive begins anew, and keeps the failures.
  const isRedriven = about(allEvents(state), "redriven").length > 0;
  const counted = [...entries.map(({ payload, entry }) => ({ ...entry, payload })), ...retries];
  for (const { payload, attempts, trailer } of counted) {
    const failures = failuresIn(trailer).length;
    if (attempts !== failures && !isRedriven)
      return `${payload} has ${attempts} attempts and ${failures} failures`;
  }
  return undefined;
}

/** What the index, the retries and the insertion order say of each other. */
const checkAgreement =
  (sharesKeys: boolean) =>
  ({ database }: Reached) =>
    disagreement(placesIn(database, keys), sharesKeys);

/** Nothing is left but dead letters. */
function checkNothingLeft({ database }: Reached): string | undefined {
  const { entries, inFlightCount } = placesIn(database, keys);
  if (inFlightCount > 0) return `${inFlightCount} entries are in flight for ever`;
  if (entries.length > 0) return `${entries.length} entries are left over`;
  const expected = new Set([keys.mover, keys.stream, keys.knownGroups, keys.returned, keys.dead]);
  const left = [...database.keys()].filter((key) => !expected.has(key));
  return left.length > 0 ? `left over: ${left.join(", ")}` : undefined;
}

const isDelayed: World["isDelayed"] = (database, payload) =>
  placesIn(database, keys).delayed.some((one) => one.payload === payload) ||
  placesIn(database, keys).retries.some((one) => one.payload === payload);

interface Given {
  readonly messages: readonly Message[];
  readonly groups?: readonly string[];
  readonly consumers?: readonly string[];
}

const promises = ({ messages, groups, consumers = ["one", "two"] }: Given) => {
  const named = messages.map(({ key }) => key).filter((key) => key !== "");
  const sharesKeys = new Set(named).size < named.length;
  const check = both(checkGroups(messages, groups), checkAttempts, checkAgreement(sharesKeys));
  return {
    isDelayed,
    check,
    checkEnd: both(check, checkNothingLeft),
    drain: drainsGroups(consumers, groups),
  };
};

const silently =
  (program: Program): Program =>
  () =>
    program(() => {});

const a = plainly("a", "key");
const b = plainly("b", "key");
const c = plainly("c");
const d = plainly("d");

/** A consumer that counts as dead at once. */
const GONE = "delayline:0:9:host/1:gone";

/** These messages are ready, for these groups. */
export const ready = (messages: readonly Message[], groups: readonly string[] = [GROUP]) =>
  silently(
    inTurn(
      ...groups.map((group) => opens(group)),
      ...messages.map((one) => offers(one, { delay: 0 })),
      moves(1, "seed", { limit: 100, into: "stream" }),
    ),
  );

const movesOn = (times: number) => moves(times, "mover", { limit: 1, into: "stream" });

export const reliableWorlds: readonly World[] = [
  {
    name: "acknowledge, reclaim",
    seed: ready([a, c]),
    clients: {
      one: consumes("one", { endings: ["ack", "ack"] }),
      two: consumes("two", { endings: ["ack", "ack"] }),
      observer: reclaims("one", 10, GROUP, 2),
    },
    faults: { lost: 1, crashes: 1 },
    ...promises({ messages: [a, c] }),
  },
  {
    name: "retry, cancel, move, acknowledge",
    seed: ready([a]),
    clients: {
      one: consumes("one", { endings: ["nack"] }),
      two: consumes("two", { endings: ["ack", "ack"] }),
      mover: movesOn(2),
      canceller: cancels("key"),
    },
    instants: [NOW, NOW + 1000],
    faults: { lost: 1, crashes: 1 },
    ...promises({ messages: [a] }),
  },
  {
    name: "give back, give up, reclaim",
    seed: ready([a]),
    clients: {
      one: consumes("one", { endings: ["give back", "give up"] }),
      two: consumes("two", { endings: ["give up", "ack"] }),
      observer: reclaims("two", 10, GROUP, 2),
    },
    faults: { lost: 1, crashes: 1 },
    ...promises({ messages: [a] }),
  },
  {
    name: "reject, redrive, cancel",
    seed: ready([a]),
    clients: {
      one: consumes("one", { endings: ["bury", "ack"] }),
      redriver: redrives(),
      other: redrives(),
      canceller: cancels("key"),
      mover: movesOn(1),
    },
    instants: [NOW, NOW + 1000],
    faults: { lost: 1, crashes: 1 },
    ...promises({ messages: [a] }),
  },
  ...(["ignore", "replace", "update"] as const).map((rule): World => ({
    name: `retry against an offer with its key, ${rule}`,
    seed: ready([a]),
    clients: {
      one: consumes("one", { endings: ["nack"] }),
      producer: offers(b, { delay: 2000, rule }),
      mover: movesOn(2),
      canceller: cancels("key"),
    },
    instants: [NOW, NOW + 1000, NOW + 2000],
    faults: { lost: 1, crashes: 1 },
    ...promises({ messages: [a, b] }),
  })),
  {
    name: "two groups",
    seed: ready([a], ["group", "other"]),
    clients: {
      one: consumes("one", { endings: ["nack"] }),
      two: consumes("two", { group: "other", endings: ["nack", "ack"] }),
      three: consumes("three", { endings: ["ack"] }),
      mover: movesOn(2),
    },
    instants: [NOW, NOW + 1000],
    faults: { lost: 1, crashes: 1 },
    ...promises({ messages: [a], groups: ["group", "other"], consumers: ["one", "two", "three"] }),
  },
  {
    name: "two take over from the LIST",
    seed: silently(inTurn(opens(), pushes("a"), pushes("c"))),
    clients: {
      one: takesOver([Buffer.alloc(16, "1"), Buffer.alloc(16, "2")]),
      two: takesOver([Buffer.alloc(16, "3"), Buffer.alloc(16, "4")]),
      consumer: consumes("one", { endings: ["ack", "give up"] }),
    },
    faults: { crashes: 1 },
    more: { lost: 1, crashes: 1 },
    ...promises({ messages: [a, c] }),
  },
  {
    name: "make plain, move, cancel",
    seed: silently(
      inTurn(ready([a, c]), consumes(GONE, { endings: ["nack"] }), offers(d, { delay: 500 })),
    ),
    clients: {
      maker: makesPlain(3),
      mover: moves(2, "mover", { into: "stream", makes: false }),
      other: moves(2, "other"),
      canceller: cancels("key"),
    },
    instants: [NOW, NOW + 1000],
    faults: { lost: 1, crashes: 1 },
    ...promises({ messages: [a, c, d], consumers: [GONE] }),
  },
];
