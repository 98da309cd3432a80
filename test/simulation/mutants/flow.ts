import type { Mutant } from "./mutant.ts";

const TESTS = ["moves/delayed/paced.test.ts", "moves/queue/flow.test.ts"];

/** Slips in the rate of a queue. */
export const FLOW: readonly Mutant[] = [
  {
    name: "rate-unused",
    breaks:
      "What moves uses nothing of the rate up: all that is due becomes ready, a burst at a time.",
    worlds: ["flow"],
    tests: TESTS,
    edits: [
      {
        file: "lua/delayed/paced.ts",
        find: `if pace and (count > 0 or pace.wasTurned) and useUp(count) then`,
        replace: `if pace and pace.wasTurned and useUp(0) then`,
      },
      {
        file: "lua/delayed/paced.ts",
        find: `if moved < count then useUp(moved) end`,
        replace: ``,
      },
    ],
  },
  {
    name: "rate-of-the-past",
    breaks: "Another rate begins with all of its burst: setting one again and again exceeds it.",
    worlds: ["flow"],
    tests: TESTS,
    unseen: "The rule judges only windows of one rate.",
    edits: [
      {
        file: "lua/queue/flow.ts",
        find: `now + math.min(used, burst) * step)`,
        replace: `now)`,
      },
    ],
  },
  {
    name: "rate-by-a-turned-clock",
    breaks: "Where the server's clock is set back, nothing becomes ready until it is where it was.",
    worlds: ["flow"],
    tests: TESTS,
    unseen: "The clocks of the world go forward again before it ends.",
    edits: [
      {
        file: "lua/places/pace.ts",
        find: `math.min(stored, now + burst * step)`,
        replace: `stored`,
      },
    ],
  },
  {
    name: "retries-beside-the-rate",
    breaks: "A turn is taken by messages and by retries: together they exceed the rate.",
    worlds: ["flow"],
    tests: TESTS,
    edits: [
      {
        file: "lua/places/pace.ts",
        find: `  for zset, count in pairs(counts) do`,
        replace: `  for zset, _ in pairs(counts) do\n    local count = #due[zset][1]`,
      },
    ],
  },
];
