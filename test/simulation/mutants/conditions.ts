import type { Mutant } from "./mutant.ts";

const FRAGMENT = "lua/fragments/condition.ts";
const MOVE = "lua/delayed/due-messages.ts";
const TESTS = ["moves/delayed/conditions.test.ts", "integration/delayed/conditions.test.ts"];

/** Slips in `onlyIf` and `deliverWithin`. */
export const CONDITIONS: readonly Mutant[] = [
  {
    name: "guard-unasked-in-stream",
    breaks:
      "Only the move to the LIST asks guards: in a reliable queue every message is delivered.",
    worlds: ["guards"],
    tests: TESTS,
    edits: [
      {
        file: MOVE,
        find: `if guard or within or trailer and trailer:byte(3)`,
        replace: `if not toAddress and (guard or within) or trailer and trailer:byte(3)`,
      },
    ],
  },
  {
    name: "missing-is-not-equal",
    breaks: "isNot does not hold for a missing key: messages are dropped that were wanted.",
    worlds: ["guards"],
    tests: TESTS,
    edits: [
      {
        file: FRAGMENT,
        find: `if test % 4 < 2 then return (found`,
        replace: `if test % 4 < 2 then return found and (found`,
      },
    ],
  },
  {
    name: "guard-fails-closed",
    breaks: "A key of another type, or one that Redis hides, drops the message: it is lost.",
    worlds: ["guards"],
    tests: TESTS,
    edits: [
      {
        file: FRAGMENT,
        find: `if type(found) == "table" then return true end`,
        replace: `if type(found) == "table" then return false end`,
      },
    ],
  },
  {
    name: "late-at-once",
    breaks:
      "deliverWithin allows no time at all: a message that is moved a moment late is dropped.",
    worlds: ["guards"],
    tests: TESTS,
    edits: [
      {
        file: FRAGMENT,
        find: `now / 1000 > deadline + within`,
        replace: `now / 1000 > deadline`,
      },
    ],
  },
  {
    name: "never-late",
    breaks: "Nobody asks deliverWithin: what fell due in an outage or a pause comes all the same.",
    worlds: ["guards"],
    tests: TESTS,
    edits: [
      {
        file: FRAGMENT,
        find: `if within and now / 1000`,
        replace: `if false and now / 1000`,
      },
    ],
  },
  {
    name: "dropped-and-delivered",
    breaks: "A message that is dropped, and told of as such, is delivered as well.",
    worlds: ["guards"],
    tests: TESTS,
    edits: [{ file: MOVE, find: `if payload and not isUnfit then`, replace: `if payload then` }],
  },
  {
    name: "drops-uncounted",
    breaks: "Redis does not count a message that is dropped alone.",
    worlds: ["guards"],
    tests: TESTS,
    edits: [
      {
        file: MOVE,
        find: `if counts[i] > 0 then redis.pcall("HSET", dropped`,
        replace: `if counts[i] > 1 then redis.pcall("HSET", dropped`,
      },
    ],
  },
  {
    name: "conditions-in-the-stream",
    breaks:
      "An entry of the stream keeps its conditions: whoever delays it again has it asked again.",
    worlds: ["guards"],
    tests: TESTS,
    unseen: "A retry does not pass the move that asks.",
    edits: [
      {
        file: MOVE,
        find: `      trailer = rest\n`,
        replace: ``,
      },
    ],
  },
  {
    name: "guard-without-prefix",
    breaks: "The guard's key is read without the keyPrefix of the client.",
    worlds: ["guards"],
    tests: TESTS,
    unseen: "The processes of the world have no prefix.",
    edits: [
      {
        file: FRAGMENT,
        find: `local key, field, found = prefix .. guard`,
        replace: `local key, field, found = guard`,
      },
    ],
  },
];
