import { drainsGroups, GROUP } from "./deliveries.ts";
import { inTurn, keys, plainly } from "./clients.ts";
import { NOW, type Reached, type World } from "./explore.ts";
import { holds } from "./holding.ts";
import { placesIn } from "./places.ts";
import { about, allEvents, both } from "./promises.ts";
import { checkAttempts, checkGroups, ready } from "./reliable.ts";

// Worlds of a partition that is consumed exclusively: one handler at a time, in order, whoever dies or stands still.

/** Two processes never hold it at once, and each holder has a greater fence. */
function checkHolders({ events, instant }: Reached): string | undefined {
  const holders = new Map<number, string>();
  const now: string[] = [];
  for (const [name, own] of Object.entries(events)) {
    const last = own.findLast(([what]) => what === "holds" || what === "over");
    for (const [fence] of about(own, "holds")) {
      if ((holders.get(Number(fence)) ?? name) !== name)
        return `two holders have the fence ${fence}`;
      holders.set(Number(fence), name);
    }
    if (last?.[0] === "holds" && Number(last[2]) > instant) now.push(name);
  }
  return now.length > 1 ? `${now.join(" and ")} hold it at once` : undefined;
}

/** The second message is not handled before the first one is acknowledged. */
const checkInOrder =
  (first: string, second: string) =>
  (state: Reached): string | undefined => {
    const events = allEvents(state);
    const isHandled = about(events, "handles").some(([, payload]) => payload === second);
    const { entries } = placesIn(state.database, keys);
    const isThere = entries.some(({ payload, needed }) => payload === first && needed.length > 0);
    return isHandled && isThere ? `${second} is handled before ${first} is done` : undefined;
  };

/** A message that failed is not handled again before its pause is over. */
function checkPauses(state: Reached): string | undefined {
  const failed = about(allEvents(state), "settled").filter(
    ([, , ending, flag]) => ending === "fail" && flag,
  );
  for (const [, payload, , , until, attempt] of failed) {
    const next = about(allEvents(state), "handles").filter(
      ([, p, later]) => p === payload && Number(later) > Number(attempt),
    );
    if (next.some(([, , , at]) => Number(at) < Number(until)))
      return `${payload} is handled in its pause`;
  }
  return undefined;
}

/** Only what reached a handler, or was in the hands of a process that died, has failed. */
function checkOnlyDeliveriesFail(state: Reached): string | undefined {
  const { entries } = placesIn(state.database, keys);
  for (const { payload, entry } of entries) {
    const handled = about(allEvents(state), "handles").filter(([, p]) => p === payload).length;
    const dead = Object.values(state.pending).filter((step) => step === undefined).length;
    // A read whose reply was lost, in a process that then stands still, counts as well.
    const lost = about(allEvents(state), "lost a reply").length;
    if (entry.attempts > handled + dead + lost)
      return `${payload} has failed ${entry.attempts} times`;
  }
  return undefined;
}

const m = plainly("a");
const n = plainly("b");
const seed = ready([m, n]);
const consumers = ["one-1", "one-2", "two-1", "two-2"];
const check = both(
  checkGroups([m, n]),
  checkAttempts,
  checkHolders,
  checkInOrder("a", "b"),
  checkPauses,
  checkOnlyDeliveriesFail,
);

const promises = {
  seed,
  check,
  isDelayed: () => false,
  drain: inTurn(holds("drain", { endings: [], reads: 4 }), drainsGroups([...consumers, "drain-1"])),
  checkEnd: both(checkGroups([m, n]), (state: Reached) => {
    const { entries, inFlightCount } = placesIn(state.database, keys);
    const acked = about(allEvents(state), "settled").filter(([, , ending]) => ending === "ack");
    if (entries.length + inFlightCount > 0) return "entries are left over";
    return acked.length === 0 ? `nothing was handled for ${GROUP}` : undefined;
  }),
} satisfies Partial<World>;

export const exclusiveWorlds: readonly World[] = [
  {
    name: "exclusive, hand-over",
    clients: {
      one: holds("one", { endings: [], reads: 2 }),
      two: holds("two", { endings: [], reads: 2 }),
    },
    instants: [NOW, NOW + 3000],
    faults: { crashes: 1 },
    more: { lost: 1, crashes: 1 },
    ...promises,
  },
  {
    name: "exclusive and strict, hand-over in a pause",
    clients: {
      one: holds("one", { endings: ["fail"], reads: 1, pause: 4000 }),
      two: holds("two", { endings: [], reads: 2 }),
    },
    instants: [NOW, NOW + 3000, NOW + 6000],
    faults: { crashes: 1 },
    more: { lost: 1, crashes: 1 },
    ...promises,
  },
];
