import type { Mutant } from "./mutant.ts";

/** Faults that Delayline once had, brought back. */
export const HISTORY: readonly Mutant[] = [
  {
    name: "history-pause-lost-at-hand-over",
    breaks:
      "The next holder does not know that a failed message waits: strict retries come early at a hand-over.",
    worlds: ["exclusive"],
    tests: ["integration/partitions/exclusive.long.test.ts", "moves/partitions/strict.test.ts"],
    edits: [
      {
        file: "partitions/exclusive/group-tenure.ts",
        find: `this.#putAside(this.#own.adopt(entries));`,
        replace: `this.#putAside(this.#own.adopt(entries.map((one) => ({ ...one, heldBackUntil: undefined }))));`,
      },
    ],
  },
  {
    name: "history-two-changes-hang",
    breaks:
      "A process that works on a change which has ended waits for leases for ever: the slower of two changes hangs.",
    worlds: ["exclusive"],
    tests: [
      "fault/partitions/exclusive-change.long.test.ts",
      "integration/partitions/exclusive.long.test.ts",
    ],
    edits: [
      {
        file: "partitions/change/change.ts",
        find: `const options = { signal, knownFact: formatFact(fact) };`,
        replace: `const options = { signal };`,
      },
    ],
  },
  {
    name: "history-nobody-goes-on",
    breaks: "Nobody continues a change whose process has died.",
    worlds: ["partitions", "exclusive"],
    tests: [
      "fault/partitions/abandoned-change.long.test.ts",
      "integration/partitions/change.test.ts",
    ],
    edits: [
      {
        file: "partitions/open-queue.ts",
        find: `await this.#change({ signal }).finish();`,
        replace: `await this.parts.following.known({ signal });`,
      },
    ],
  },
  {
    name: "history-resume-unheard",
    breaks:
      "A resume that is announced during a sweep is not heard: the queue rests until the next one.",
    worlds: ["pauses"],
    tests: ["integration/queue/pause.test.ts", "integration/delayed/transfer.test.ts"],
    edits: [
      {
        file: "delayed/transfer/transfer-task.ts",
        find: `    } else {
      this.#heard = 0;
    }`,
        replace: `    }`,
      },
    ],
  },
  {
    name: "history-order-only-if-seen",
    breaks:
      "A change keeps the order of keys only if a consumer is seen: handlers of one key overlap after it.",
    worlds: ["exclusive"],
    tests: [
      "moves/partitions/fact.test.ts",
      "moves/partitions/hold.test.ts",
      "fault/partitions/exclusive-change.long.test.ts",
    ],
    edits: [
      {
        file: "lua/partitions/fact.ts",
        find: `local isExclusive, isTaken = redis.call("HEXISTS", holder, "group") == 1, false`,
        replace: `local isExclusive, isTaken = false, true`,
      },
    ],
  },
  {
    name: "history-rejected-by-itself",
    breaks:
      "An offer that is sent again is rejected since its own first copy has the key: a rejected offer is delivered.",
    worlds: ["keys"],
    tests: [
      "moves/delayed/offer-keyed.test.ts",
      "fault/lost-replies.test.ts",
      "integration/delayed/keys.test.ts",
    ],
    edits: [
      {
        file: "lua/delayed/offer-keyed.ts",
        find: `if old and old.id == member:sub(2, 17) then`,
        replace: `if old and rule ~= "ignore" and old.id == member:sub(2, 17) then`,
      },
    ],
  },
  {
    name: "history-refused-copy",
    breaks:
      "ioredis sends an offer again whose reply was lost, and Redis refuses that copy: not-stored, and delivered.",
    worlds: ["keys"],
    tests: ["fault/refused-copies.test.ts"],
    edits: [
      {
        file: "redis/connections.ts",
        find: `if (!line.isSame) noteEarlierCopy(error);`,
        replace: `if (!line.isSame && this.#isClosed) noteEarlierCopy(error);`,
      },
    ],
  },
  {
    name: "history-later-head-unheard",
    breaks:
      "The server's clock was set forward, and the head was cancelled: a message behind it is late by seconds.",
    worlds: ["plain"],
    tests: ["fault/clock-step.test.ts"],
    edits: [
      {
        file: "delayed/transfer/transfer-task.ts",
        find: `    } else {
      // The new head is not earlier`,
        replace: `    } else if (deadline === 0) {
      // The new head is not earlier`,
      },
    ],
  },
];
