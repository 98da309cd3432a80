import {
  cancels,
  cancelsById,
  drain,
  givesBack,
  inTurn,
  keys,
  moves,
  offers,
  plainly,
  reschedules,
  takes,
} from "./clients.ts";
import { NOW, type World } from "./explore.ts";
import { placesIn } from "./places.ts";
import type { Program } from "./program.ts";
import {
  both,
  checkNotEarly,
  checkNothingLeft,
  checkOrder,
  checkPlaces,
  checkVerdicts,
} from "./promises.ts";
import type { Message } from "../../helpers/moves.ts";

// Worlds of a plain queue.

const silently =
  (program: Program): Program =>
  () =>
    program(() => {});

const a = plainly("a", "key");
const b = plainly("b", "key");
const c = plainly("c");
const d = plainly("d");

const isDelayed: World["isDelayed"] = (database, payload) =>
  placesIn(database, keys).delayed.some((one) => one.payload === payload);
const common = { drain, isDelayed, checkEnd: both(checkPlaces([]), checkNothingLeft) };
const ofSeeded = (...seeded: readonly Message[]) => ({
  drain,
  isDelayed,
  checkEnd: both(checkPlaces(seeded), checkNothingLeft),
});

export const plainWorlds: readonly World[] = [
  {
    name: "offer, cancel, move, take",
    clients: {
      producer: offers(a),
      canceller: cancels("key"),
      mover: moves(2, "one"),
      taker: takes(2),
    },
    instants: [NOW, NOW + 1000],
    faults: { lost: 1, crashes: 1 },
    faulty: ["producer", "canceller", "mover"],
    check: both(checkPlaces([]), checkNotEarly([a, NOW + 1000])),
    ...common,
  },
  ...(["ignore", "replace", "update"] as const).map((rule): World => ({
    name: `two offers with one key, ${rule}`,
    clients: {
      one: offers(a, { delay: 1000, rule }),
      two: offers(b, { delay: 500, rule }),
      canceller: cancels("key"),
      mover: moves(2, "one"),
    },
    instants: [NOW, NOW + 500, NOW + 1000],
    faults: { lost: 1, crashes: 1 },
    faulty: ["one", "two"],
    check: checkPlaces([]),
    ...common,
  })),
  {
    name: "reschedule, cancel, move",
    seed: silently(offers(a)),
    clients: {
      rescheduler: reschedules("key", 2000),
      other: reschedules("key", 500),
      canceller: cancels("key"),
      mover: moves(2, "one"),
    },
    instants: [NOW, NOW + 1000, NOW + 2000],
    faults: { lost: 1 },
    check: both(checkPlaces([a]), checkVerdicts(a)),
    ...ofSeeded(a),
  },
  {
    name: "cancel by id and by key, reschedule",
    seed: silently(inTurn(offers(a), offers(c))),
    clients: {
      one: cancelsById(a, NOW + 1000),
      two: cancels("key"),
      rescheduler: reschedules("key", 2000),
      mover: moves(2, "one"),
    },
    instants: [NOW, NOW + 1000],
    faults: { lost: 1 },
    check: checkPlaces([a, c]),
    ...ofSeeded(a, c),
  },
  {
    name: "equal deadlines, two movers",
    seed: silently(inTurn(offers(d), offers(c), offers(a))),
    clients: { one: moves(2, "one"), two: moves(2, "two"), canceller: cancels("key") },
    instants: [NOW, NOW + 1000],
    faults: { lost: 1, crashes: 1 },
    check: both(checkPlaces([a, c, d]), checkOrder("a", "c", "d"), checkVerdicts(a)),
    ...ofSeeded(a, c, d),
  },
  {
    name: "take, give back",
    seed: silently(
      inTurn(...[a, c, d].map((one) => offers(one, { delay: 0 })), moves(1, "seed", { limit: 9 })),
    ),
    clients: {
      one: givesBack("receipt one", 2),
      two: givesBack("receipt two", 1),
      taker: takes(3),
    },
    faults: { lost: 2 },
    more: { lost: 3 },
    faulty: ["one", "two"],
    check: checkPlaces([a, c, d]),
    ...ofSeeded(a, c, d),
  },
  {
    name: "offers without keys, move, take",
    clients: {
      one: offers(c),
      two: offers(d, { delay: 500 }),
      mover: moves(2, "one"),
      taker: takes(1),
    },
    instants: [NOW, NOW + 500, NOW + 1000],
    faults: { lost: 1, late: 1 },
    more: { lost: 2, late: 1, crashes: 1 },
    faulty: ["one", "two"],
    check: checkPlaces([]),
    ...common,
  },
];
