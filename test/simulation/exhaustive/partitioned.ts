import { createFact } from "../../../src/lua/partitions/fact.ts";
import { formatFact } from "../../../src/partitions/ring/fact.ts";
import { tableOf } from "../../../src/partitions/ring/ring.ts";
import {
  bucketThatMoves,
  cancelsIn,
  changes,
  drainsPartitions,
  keysAt,
  located,
  movesAt,
  offersTo,
  stableFact,
  type Located,
} from "./changing.ts";
import { inTurn } from "./clients.ts";
import { NOW, type Reached, type World } from "./explore.ts";
import { disagreement, payloadOf, placesIn, underWay } from "./places.ts";
import { call, type Program } from "./program.ts";
import { about, allEvents } from "./promises.ts";

// Worlds of a queue whose number of partitions changes.

const ALL = [0, 1];

const placesOf = ({ database }: Pick<Reached, "database">) =>
  ALL.map((partition) => placesIn(database, keysAt(partition)));

/** Each message is in one place, in a partition or on its way; or it was taken or cancelled. */
const checkPlaces =
  (seeded: readonly Located[]) =>
  (state: Reached): string | undefined => {
    const all = placesOf(state);
    const events = allEvents(state);
    const took = about(events, "took").map(([payload]) => String(payload));
    const there = [
      ...all.flatMap(({ delayed, ready }) => [...delayed.map(({ payload }) => payload), ...ready]),
      ...underWay(all).map(payloadOf),
      ...took,
    ];
    const twice = there.find((payload, i) => there.indexOf(payload) !== i);
    if (twice !== undefined && !state.repeated.includes(twice)) return `${twice} is there twice`;
    const offered = about(events, "offered");
    const verdicts = about(events, "cancelled").map(([, flag]) => flag);
    const gone = verdicts.filter((flag) => flag === true).length;
    const stored = seeded.length + offered.filter(([, outcome]) => outcome !== "existing").length;
    const open = about(events, "offers").length - offered.length;
    const unknown = verdicts.filter((flag) => flag === "unknown").length;
    // A cancel that has crashed, or is under way, may have removed its message and not told yet.
    const isSilent = Object.entries(state.events).filter(
      ([name, own]) => name.startsWith("canceller") && own.length === 0,
    ).length;
    if (there.length + gone < stored - unknown - open - isSilent)
      return `of ${stored} messages ${there.length + gone} are left`;
    if (there.length + gone > stored + open + state.repeated.length)
      return `of ${stored} messages ${there.length + gone} are there`;
    for (const one of seeded) {
      const isFalse = about(events, "cancelled").some(([key, flag]) => key === one.key && !flag);
      const isDelayed = all.some(({ delayed }) => delayed.some(({ key }) => key === one.key));
      if (isFalse && isDelayed) return `${one.payload} is delayed, though cancel said false`;
    }
    for (const [partition, places] of all.entries()) {
      const wrong = disagreement(places);
      if (wrong !== undefined) return `${wrong} in partition ${partition}`;
    }
    return undefined;
  };

const silently =
  (program: Program): Program =>
  () =>
    program(() => {});

const a = located("a", bucketThatMoves(1, 2), "key a");
const b = located("b", tableOf(2).indexOf(0), "key b");
const c = located("c", tableOf(2).lastIndexOf(1), "key c");

const creates = (count: number, partitions: readonly number[]): Program =>
  function* () {
    for (const partition of partitions) {
      const args = { fact: formatFact(stableFact(count)), notice: "notice" };
      yield* call(createFact, keysAt(partition), args);
    }
  };

const promises = (before: number, count: number, seeded: readonly Located[]) => ({
  check: checkPlaces(seeded),
  isDelayed: (database: Reached["database"], payload: string) => {
    const all = placesOf({ database });
    return (
      all.some(({ delayed }) => delayed.some((one) => one.payload === payload)) ||
      underWay(all).some((row) => payloadOf(row) === payload)
    );
  },
  drain: drainsPartitions(before, count, ALL),
  checkEnd: (state: Reached): string | undefined => {
    const wrong = checkPlaces(seeded)(state);
    if (wrong !== undefined) return wrong;
    const all = placesOf(state);
    if (all.some(({ journal }) => journal.length > 0)) return "a batch is open for ever";
    const facts = all.map(({ fact }) => fact).filter((fact) => fact !== undefined);
    if (new Set(facts.map((fact) => fact.split(":").slice(1).join(":"))).size > 1)
      return `the facts differ: ${facts.join(", ")}`;
    for (const [payload, partition] of about(state.events["drain"] ?? [], "took")) {
      const { bucket } = [a, b, c].find((one) => one.payload === payload)!;
      if (tableOf(count)[bucket] !== partition) return `${String(payload)} is not at home`;
    }
    return undefined;
  },
});

export const partitionedWorlds: readonly World[] = [
  {
    name: "from one partition to two, cancel",
    seed: silently(inTurn(creates(1, [0]), ...[a, b, c].map((one) => offersTo(1, one)))),
    clients: {
      changer: changes(1, 2),
      canceller: cancelsIn(1, a),
    },
    faults: { lost: 1, crashes: 1 },
    ...promises(1, 2, [a, b, c]),
  },
  {
    name: "from one partition to two, offer",
    seed: silently(inTurn(creates(1, [0]), offersTo(1, b))),
    clients: {
      changer: changes(1, 2),
      producer: offersTo(1, a),
    },
    faults: { lost: 1, crashes: 1 },
    ...promises(1, 2, [b]),
  },
  {
    name: "from one partition to two, by two at once",
    seed: silently(inTurn(creates(1, [0]), offersTo(1, a))),
    clients: { changer: changes(1, 2), other: changes(1, 2) },
    isLong: true,
    faults: {},
    more: { lost: 1, crashes: 1 },
    ...promises(1, 2, [a]),
  },
  {
    name: "from two partitions to one, cancel, move",
    seed: silently(inTurn(creates(2, [0, 1]), offersTo(2, a))),
    clients: {
      changer: changes(2, 1),
      canceller: cancelsIn(2, a),
      mover: movesAt(2, 1, 1),
    },
    instants: [NOW, NOW + 1000],
    faults: {},
    more: { crashes: 1 },
    ...promises(2, 1, [a]),
  },
  {
    name: "from two partitions to one, offer, cancel",
    seed: silently(creates(2, [0, 1])),
    clients: {
      changer: changes(2, 1),
      producer: offersTo(2, a),
      canceller: cancelsIn(2, a),
    },
    isLong: true,
    faults: {},
    more: { lost: 1 },
    ...promises(2, 1, []),
  },
  {
    name: "from one partition to two, late copies",
    seed: silently(inTurn(creates(1, [0]), offersTo(1, a), offersTo(1, c))),
    clients: { changer: changes(1, 2), canceller: cancelsIn(1, a) },
    isLong: true,
    faults: { late: 1 },
    more: { late: 1, crashes: 1 },
    ...promises(1, 2, [a, c]),
  },
];
