import type { Mutant } from "./mutant.ts";

const SCRIPT = "lua/schedules/plan-schedule.ts";
const TESTS = [
  "unit/schedules/plan.test.ts",
  "moves/schedules/plan-schedule.test.ts",
  "integration/schedules/schedules.test.ts",
];

/** Slips in planning schedules. */
export const SCHEDULES: readonly Mutant[] = [
  {
    name: "jitter-forgotten",
    breaks:
      "A schedule that begins between a tick and its message, which jitter has made later, leaves it out.",
    worlds: ["schedules"],
    tests: ["unit/schedules/plan.test.ts"],
    edits: [
      {
        file: "schedules/plan.ts",
        find: `Math.max(lastAt ?? 0, now - spread - jitter)`,
        replace: `Math.max(lastAt ?? 0, now - spread)`,
      },
    ],
  },
  {
    name: "migrated-schedule-wakes-nobody",
    breaks: "A schedule that migrates wakes no planner: its next ticks are placed too late.",
    worlds: ["schedules"],
    tests: ["moves/partitions/push-in.test.ts"],
    edits: [
      {
        file: "lua/partitions/push-in.ts",
        find: `  first = -1`,
        replace: ``,
      },
    ],
  },
  {
    name: "plans-without-revision",
    breaks:
      "A planner does not compare the record with the one it has read: two place the same ticks, or bring back a removed schedule.",
    worlds: ["schedules"],
    tests: TESTS,
    edits: [
      {
        file: SCRIPT,
        find: `if (held and held:match("^(%x+)|") or "") ~= expected then`,
        replace: `if held and not held:match("^(%x+)|") then`,
      },
    ],
  },
  {
    name: "pause-leaves-messages",
    breaks: "Pausing a schedule leaves the messages that are placed ahead: they come in the pause.",
    worlds: ["schedules"],
    tests: TESTS,
    edits: [
      {
        file: "schedules/plan.ts",
        find: `return { record, puts: [], withdrawn: old.planned };`,
        replace: `return { record, puts: [], withdrawn: old.planned.slice(0, 1) };`,
      },
    ],
  },
  {
    name: "resume-catches-up",
    breaks: "Resuming a schedule keeps the watermark: all ticks of the pause come at once.",
    worlds: ["schedules"],
    tests: TESTS,
    edits: [
      {
        file: "schedules/plan.ts",
        find: `const record = { ...old, ...begin(old, old.rule, now), isPaused: false, planAt: now };`,
        replace: `const record = { ...old, isPaused: false, planAt: now };`,
      },
    ],
  },
  {
    name: "planned-once",
    breaks:
      "A schedule is not planned again once its messages are placed: it ends after half a minute.",
    worlds: ["schedules"],
    tests: TESTS,
    edits: [
      {
        file: "schedules/plan.ts",
        find: `planAt = now + Math.ceil(((puts.at(-1) ?? kept.at(-1))!.deadline - now) / 2);`,
        replace: `planAt = Infinity;`,
      },
    ],
  },
  {
    name: "overlap-unnoted",
    breaks: "An entry of a run that must not overlap is not noted: the next run comes beside it.",
    worlds: ["schedules"],
    tests: ["integration/schedules/overlap.test.ts"],
    edits: [
      {
        file: "lua/fragments/run.ts",
        find: `  redis.pcall("HSET", running, name, table.concat(alive, " "))`,
        replace: ``,
      },
    ],
  },
  {
    name: "overlap-newest",
    breaks:
      "Only the newest run of a schedule is remembered: after a retry or a trigger a tick comes beside a run in flight.",
    worlds: ["schedules"],
    tests: ["integration/schedules/overlap.test.ts"],
    edits: [
      {
        file: "lua/fragments/run.ts",
        find: `  local alive = runsOf(name)`,
        replace: `  local alive = {}`,
      },
    ],
  },
  {
    name: "planning-stays-lost",
    breaks:
      "Nobody puts back when to plan a schedule, once that key was evicted: it ends, and is said to be unchanged.",
    worlds: [],
    tests: ["integration/schedules/lost.test.ts"],
    unseen: "The simulator evicts no keys.",
    edits: [
      {
        file: "handles/schedules.ts",
        find: `return outcome === "outdated" || isPlanned ? undefined : planAgain(record, now);`,
        replace: `return undefined;`,
      },
    ],
  },
  {
    name: "lost-record-twice",
    breaks:
      "A schedule whose record was lost is declared again beside its messages: each tick that is placed comes twice.",
    worlds: [],
    tests: ["integration/schedules/lost.test.ts"],
    unseen: "The simulator evicts no keys.",
    edits: [
      {
        file: SCRIPT,
        find: `if former and select(3, unpackMember(former)) == keys[i] then leaving[#leaving + 1] = former end`,
        replace: ``,
      },
    ],
  },
  {
    name: "revision-without-content",
    breaks:
      "A set is declared by turns with other schedules in one revision: each declaration withdraws what is placed.",
    worlds: ["schedules"],
    tests: ["integration/schedules/declare.test.ts"],
    edits: [
      {
        file: SCRIPT,
        find: `return { revision, content == digest and 0 or 1 }`,
        replace: `return { revision, 0 }`,
      },
    ],
  },
  {
    name: "dropped-untold",
    breaks:
      "What the move drops of a schedule is not counted for it: three nights were skipped, and one is told as missed.",
    worlds: [],
    tests: ["integration/schedules/told.test.ts"],
    unseen: "The simulator does not ask how many ticks were missed.",
    edits: [
      {
        file: "lua/delayed/due-messages.ts",
        find: `  unfit.runs[#unfit] = runIn(one.rest)`,
        replace: ``,
      },
    ],
  },
  {
    name: "schedule-stays-behind",
    breaks: "A schedule that migrates to another partition stays in its former one as well.",
    worlds: ["schedules"],
    tests: ["moves/partitions/pull-out.test.ts", "integration/schedules/partitions.long.test.ts"],
    edits: [
      {
        file: "lua/partitions/pull-out.ts",
        find: `redis.call("HDEL", schedules, unpack(names))
redis.call("ZREM", planning, unpack(names))`,
        replace: ``,
      },
    ],
  },
];
