import type { Mutant } from "./mutant.ts";

const TESTS = [
  "moves/reliable/revoke.test.ts",
  "integration/reliable/revoke.test.ts",
  "fault/revoke-race.test.ts",
];

/** Slips in the revoking of messages, wherever they are. */
export const REVOKE: readonly Mutant[] = [
  {
    name: "revoked-retry-left",
    breaks: "revoke leaves a message that retries where it is: its next attempt begins.",
    worlds: ["reliable"],
    tests: TESTS,
    edits: [
      {
        file: "lua/reliable/revoke.ts",
        find: `for _, place in ipairs(places) do leave(place, names[place], elementsAre) end`,
        replace: `for _, place in ipairs(places) do
  if place ~= "retrying" then leave(place, names[place], elementsAre) end
end`,
      },
    ],
  },
  {
    name: "revoked-letter-left",
    breaks: "revoke leaves the dead letter, and a redrive delivers what was revoked.",
    worlds: ["reliable", "groups"],
    tests: TESTS,
    edits: [
      {
        file: "lua/reliable/revoke.ts",
        find: `if #buried > 0 then redis.call("XDEL", dead, unpack(buried)) end`,
        replace: ``,
      },
    ],
  },
  {
    name: "revoked-of-one-group",
    breaks:
      "revoke takes a message from one of the groups that run it: the late ack of another says true.",
    worlds: ["groups"],
    tests: TESTS,
    edits: [
      {
        file: "lua/reliable/revoke.ts",
        find: `    if consumer then`,
        replace: `    if consumer and group == more[1].group then`,
      },
    ],
  },
  {
    name: "revoked-where-found-first",
    breaks:
      "revoke by id looks no further where one of several groups retries: the others begin it again.",
    worlds: ["groups"],
    tests: TESTS,
    edits: [
      {
        file: "lua/reliable/revoke.ts",
        find: `isAlone = {}, false, #groups <= 1`,
        replace: `isAlone = {}, false, true`,
      },
    ],
  },
  {
    name: "revoked-before-arrival",
    breaks:
      "While the number of partitions changes, revoke asks only those that messages leave: one that has arrived begins.",
    worlds: ["partitions"],
    tests: ["integration/partitions/revoke.test.ts"],
    edits: [
      {
        file: "partitions/all-revocations.ts",
        find: `    await lookAt(arriving);
`,
        replace: ``,
      },
    ],
  },
  {
    name: "revoked-by-an-old-fact",
    breaks:
      "revoke does not ask whether the number of partitions has changed while it looked: a message that migrates begins.",
    worlds: ["partitions"],
    tests: ["integration/partitions/revoke.test.ts"],
    unseen:
      "A message seldom arrives just where a call has looked already: not found in five minutes.",
    edits: [
      {
        file: "partitions/all-revocations.ts",
        find: `if (now.epoch === fact.epoch) return merged(found);`,
        replace: `if (now.epoch >= fact.epoch) return merged(found);`,
      },
    ],
  },
  {
    name: "revoked-and-ended-at-once",
    breaks: "A process says that the handler of a revoked message has ended while it runs.",
    worlds: ["reliable"],
    tests: [...TESTS, "integration/reliable/revoked-deliveries.test.ts"],
    edits: [
      {
        file: "reliable/group/revoked-deliveries.ts",
        find: `if (held.isGiven && !held.isOver) this.#left.set`,
        replace: `if (held.isGiven && held.isOver) this.#left.set`,
      },
    ],
  },
  {
    name: "revoked-unheard",
    breaks: "A process does not heed the notice: a handler of a revoked message goes on.",
    worlds: ["reliable"],
    tests: [...TESTS, "integration/reliable/revoked-deliveries.test.ts"],
    edits: [
      {
        file: "reliable/group/revoked-deliveries.ts",
        find: `if (held !== undefined) return held.revoke(error);`,
        replace: `if (held !== undefined) return;`,
      },
    ],
  },
];
