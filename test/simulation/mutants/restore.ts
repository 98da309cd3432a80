import type { Mutant } from "./mutant.ts";

const unseen = "not found in the few runs of its world that were tried so far";

/** Slips of what notices that Redis went back to an older copy. */
export const RESTORE: readonly Mutant[] = [
  {
    name: "restore-taken-for-failover",
    breaks: "A failover that loses the last half second is taken for a restored backup.",
    worlds: ["restores", "plain"],
    tests: ["unit/queue/memory.test.ts", "fault/restored.long.test.ts"],
    unseen,
    edits: [
      {
        file: "queue/memory.ts",
        find: `Math.max(heardAt, last?.at ?? -Infinity) - BOUND;`,
        replace: `Math.max(heardAt, last?.at ?? -Infinity);`,
      },
    ],
  },
  {
    name: "restore-goes-on-unpaused",
    breaks: "With onRestore: pause, messages move on although the pause was refused.",
    worlds: ["plain"],
    tests: ["unit/redis/fuse.test.ts"],
    unseen: "no world refuses the pause that follows a restore",
    edits: [
      {
        file: "redis/fuse.ts",
        find: `if (this.#isBlown) await this.#listener.beforeGoingOn();
      this.#isBlown = false;`,
        replace: `if (this.#isBlown) {
        this.#isBlown = false;
        await this.#listener.beforeGoingOn();
      }`,
      },
    ],
  },
  {
    name: "restore-moved-first",
    breaks: "A restored backup's messages are moved before the process looks.",
    worlds: ["restores"],
    tests: ["fault/restored.long.test.ts"],
    unseen,
    edits: [
      {
        file: "delayed/transfer/transfer-task.ts",
        find: `      await passing;
`,
        replace: `      passing.catch(() => {});
`,
      },
    ],
  },
  {
    name: "restore-forgotten-in-quiet",
    breaks:
      "What a burst showed last counts only from the next transfer on, however late that comes.",
    worlds: ["restores"],
    tests: ["unit/queue/memory.test.ts"],
    unseen,
    edits: [
      {
        file: "queue/memory.ts",
        find: `shown.at - before.at < STEP)`,
        replace: `last.at - before.at < STEP)`,
      },
    ],
  },
];
