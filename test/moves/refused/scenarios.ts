import { clearDelayed, remove, removeElements } from "../../../src/lua/delayed/remove.ts";
import { offerKeyed } from "../../../src/lua/delayed/offer-keyed.ts";
import { offer } from "../../../src/lua/delayed/offer.ts";
import { pollNewestTo, pollOldest } from "../../../src/lua/delayed/poll.ts";
import { reschedule } from "../../../src/lua/delayed/reschedule.ts";
import {
  pacedSweep,
  pacedTransfer,
  retire,
  sweep,
  transfer,
} from "../../../src/lua/delayed/transfer.ts";
import { tidyAddresses, tidyBusinessKeys, tidyMembers } from "../../../src/lua/delayed/tidy.ts";
import type { Elements } from "../../../src/lua/family.ts";
import {
  ackAndOffer,
  ackAndOfferIntoPartition,
  rowsAsArgs,
} from "../../../src/lua/exchanges/ack-and-offer.ts";
import { exchange, exchangeIntoPartition } from "../../../src/lua/exchanges/exchange.ts";
import { guarded } from "../../../src/lua/guarded.ts";
import { attend } from "../../../src/lua/partitions/attend.ts";
import { drainPage } from "../../../src/lua/partitions/drain-page.ts";
import {
  dropBatch,
  pullOut,
  pullOutPage,
  pullOutOnce,
  pullOutSchedules,
} from "../../../src/lua/partitions/pull-out.ts";
import {
  advanceFact,
  beginChange,
  changeFact,
  createFact,
  noteDone,
} from "../../../src/lua/partitions/fact.ts";
import {
  hold,
  noteHold,
  raiseFence,
  releaseHold,
  renewHold,
} from "../../../src/lua/partitions/hold.ts";
import { inherit } from "../../../src/lua/partitions/inherit.ts";
import { raisePaces } from "../../../src/lua/partitions/lane-paces.ts";
import { pushIn } from "../../../src/lua/partitions/push-in.ts";
import { removeRemains } from "../../../src/lua/partitions/partition.ts";
import { noteActivity } from "../../../src/lua/queue/activity.ts";
import { noteHistory } from "../../../src/lua/queue/history.ts";
import { makePlain } from "../../../src/lua/queue/make-plain.ts";
import { freeSlots, holdLane, pinLane, setFlow } from "../../../src/lua/queue/flow.ts";
import { setPaused } from "../../../src/lua/queue/set-paused.ts";
import {
  clearQuarantine,
  removeQuarantined,
  requeue,
  requeueQuarantined,
  quarantineBytes,
} from "../../../src/lua/ready/quarantine.ts";
import { clearReady, giveBack, popFromMany, pushReady } from "../../../src/lua/ready/ready.ts";
import {
  ack,
  ackAndNote,
  ackOnce,
  again,
  bury,
  extend,
  giveBackEntries,
  handOut,
  retryLater,
} from "../../../src/lua/reliable/deliveries.ts";
import { beat, leave } from "../../../src/lua/reliable/consumers.ts";
import {
  clearDead,
  redrive,
  redriveLetters,
  removeDead,
  removeLetters,
} from "../../../src/lua/reliable/dead-letters.ts";
import { openGroup, trim } from "../../../src/lua/reliable/groups.ts";
import { forgetOnce } from "../../../src/lua/queue/once.ts";
import { reclaim } from "../../../src/lua/reliable/reclaim.ts";
import { revoke } from "../../../src/lua/reliable/revoke.ts";
import { clearRetries } from "../../../src/lua/reliable/retries.ts";
import { streamPage } from "../../../src/lua/reliable/stream-page.ts";
import { planSchedule, raiseSet } from "../../../src/lua/schedules/plan-schedule.ts";
import { restorePlanning } from "../../../src/lua/schedules/schedules-due.ts";
import { takeOver } from "../../../src/lua/reliable/take-over.ts";
import { digestOf } from "../../../src/queue/quarantine-elements.ts";
import type { Row, Script, ScriptArg } from "../../../src/lua/script.ts";
import { eventually } from "../../helpers/eventually.ts";
import {
  asAddress,
  asMember,
  bytes,
  indexEntry,
  message,
  onceRecord,
  packRetry,
  retryName,
  waitingFor,
  type Message,
  type QueueState,
} from "../../helpers/moves.ts";
import { allTo } from "../../helpers/partitions.ts";
import type { Streams } from "../../helpers/streams.ts";
import type { Rule } from "./rules.ts";

/** The server's time in every scenario (epoch ms). */
export const NOW = 1_900_000_000_000;

/** Any script. */
export type AnyScript = Script<string, string, unknown, string>;

/** What a script is called with. */
export interface Call {
  readonly args: Readonly<Record<string, ScriptArg>>;
  readonly rows?: readonly Row<string>[];
}

export interface Scenario {
  /** Tells the scenarios of one script apart. */
  readonly when?: string;
  readonly script: AnyScript;
  /** What the insertion order holds. Defaults to addresses. */
  readonly elements?: Elements;
  /** Fills the queue, and returns what the script is called with. */
  readonly seed: (queue: Streams) => Promise<Call>;
  /** The script finds nothing to do here. */
  readonly changesNothing?: true;
  /** What may be left behind, or undone. */
  readonly rules?: readonly Rule[];
  /** Why a refusal may leave a part of the work done: a second run does the rest, and nothing twice. */
  readonly partly?: string;
  /** The error has to say that a part may be done, since users rely on it. */
  readonly isTold?: true;
  /** Commands whose refusal the script does not survive yet. */
  readonly unmended?: readonly string[];
}

const FAR = 5_000_000_000_000;
const [a, b, c] = [message("a", 1000), message("b", 2000, "key b"), message("c", 3000)];
const [far, further] = [message("f", FAR, "key f"), message("g", FAR + 1, "key g")];
const ELEMENT = { addresses: asAddress, members: asMember };
const BOTH = ["addresses", "members"] as const;
const DEAD = "delayline:1:00000000-0000-4000-8000-000000000000";

const indexed = (...messages: Message[]) =>
  Object.fromEntries(messages.map((one) => [one.key, indexEntry(one)]));

/** Messages that wait in lanes, of which one rests. */
const [w, x] = [message("w", 1500, "key w"), message("x", 2500)];
const inLanes = [waitingFor(w, "b"), waitingFor(x, "c")] as const;
const waitingState: QueueState = {
  businessKeys: indexed(w),
  room: Object.fromEntries(inLanes.map(({ id, kept }) => [id, kept])),
  turns: inLanes.map(({ turn }) => [turn, 0]),
  lanes: [
    ["b", 3],
    ["c", 1e12 + 2],
  ],
  resting: [["c", 9e12]],
  lanePaces: [["c", 9e15]],
};
const LANES = { kind: "lanes", ahead: "100", lane: "1000 5 1 0", rates: "1" };

/** A schedule whose runs wait for each other: two that are due, and one that waits. */
const OWN = "schedule:s";
const runOf = (payload: string, deadline: number, key = "") =>
  message(payload, deadline, key, {
    lane: OWN,
    occurrence: { schedule: "s", tick: deadline, overlap: "wait" },
  });
const [ownFirst, ownSecond, ownWaits] = [
  runOf("r", 900, "key r"),
  runOf("s", 1100),
  runOf("v", 800, "key v"),
];
const ownWaiting = waitingFor(ownWaits, OWN);
const ownLane = {
  kind: "lanes",
  only: "1",
  ahead: "1e15",
  own: "1",
  slots: "1",
  [`own:${OWN}`]: "1",
  [`lane:${OWN}`]: "0 0 1 1",
};
const { only: _, ...besideUsers } = ownLane;
const ownState: QueueState = {
  businessKeys: indexed(ownWaits),
  room: { [ownWaiting.id]: ownWaiting.kept },
  turns: [[ownWaiting.turn, 0]],
  lanes: [[OWN, 1e12 + 2]],
  resting: [[OWN, 9e12]],
  flow: ownLane,
};

const delayedState = (elements: Elements, ...messages: Message[]): QueueState => ({
  timeouts: messages.map(({ delayed }) => delayed),
  order: messages.map(ELEMENT[elements]),
  businessKeys: indexed(...messages.filter(({ key }) => key !== "")),
});

const seeded =
  (state: QueueState, call: Call | ((queue: Streams) => Call)): Scenario["seed"] =>
  async (queue) => {
    await queue.seed(state);
    return typeof call === "function" ? call(queue) : call;
  };

const CHANNEL = { channel: "wake-ups" };

/* Delayed messages. */

const [n, o] = [message("n", 1500, "key n"), message("o", 1600)];
const offered = ({ member, deadline }: Message) => ({ member: bytes(member), delay: "", deadline });
const offeredAs = (one: Message, key: string, rule: string) => ({
  member: bytes(one.member),
  delay: "",
  deadline: one.deadline,
  key,
  rule,
  maxWait: "",
});

const SENT_AGAIN =
  "new messages may be stored, although the reply to those that were sent before is refused";

const NOT_TAKEN_BACK =
  "the messages are stored: the wake-up was refused, and then to take them back";

const offers = BOTH.flatMap((elements): Scenario[] => [
  {
    script: offer,
    elements,
    rules: ["dead"],
    partly: NOT_TAKEN_BACK,
    isTold: true,
    seed: seeded(delayedState(elements, far), { args: CHANNEL, rows: [n, o].map(offered) }),
  },
  {
    when: "sent again, with one more",
    script: offer,
    elements,
    rules: ["dead", "twice"],
    partly: SENT_AGAIN,
    isTold: true,
    seed: seeded(delayedState(elements, far, n), { args: CHANNEL, rows: [n, o].map(offered) }),
  },
  {
    script: offerKeyed,
    elements,
    rules: ["dead"],
    seed: seeded(delayedState(elements, far, further, b), {
      args: CHANNEL,
      rows: [
        offeredAs(o, "", ""),
        offeredAs(n, n.key, "ignore"),
        offeredAs(message("r", 1700, b.key), b.key, "ignore"),
        offeredAs(message("s", 1800, far.key), far.key, "replace"),
        offeredAs(message("t", 1900, further.key), further.key, "update"),
      ],
    }),
  },
  {
    when: "new keys",
    script: offerKeyed,
    elements,
    rules: ["dead"],
    partly: NOT_TAKEN_BACK,
    isTold: true,
    seed: seeded(delayedState(elements, far), {
      args: CHANNEL,
      rows: [offeredAs(o, "", ""), offeredAs(n, n.key, "ignore")],
    }),
  },
  {
    when: "collecting, where one is full",
    script: offerKeyed,
    elements,
    rules: ["dead"],
    seed: seeded(delayedState(elements, far, further, b), {
      args: CHANNEL,
      rows: [
        offeredAs(o, "", ""),
        offeredAs(message("s", 1800, far.key), far.key, "collect,100,1000"),
        offeredAs(message("t", 1900, further.key), further.key, "collect,100,1"),
      ],
    }),
  },
  {
    when: "collecting, full alone",
    script: offerKeyed,
    elements,
    rules: ["dead"],
    seed: seeded(delayedState(elements, far, further), {
      args: CHANNEL,
      rows: [offeredAs(message("t", FAR + 9, further.key), further.key, "collect,100,1")],
    }),
  },
  {
    when: "sent again, with one more",
    script: offerKeyed,
    elements,
    rules: ["dead", "twice"],
    partly: SENT_AGAIN,
    isTold: true,
    seed: seeded(delayedState(elements, far, n), {
      args: CHANNEL,
      rows: [offeredAs(n, n.key, "replace"), offeredAs(o, "", "")],
    }),
  },
  ...(["ignore", "replace", "update"] as const).map((rule): Scenario => ({
    when: rule,
    script: offerKeyed,
    elements,
    rules: ["dead"],
    seed: seeded(delayedState(elements, far), {
      args: CHANNEL,
      rows: [offeredAs(message("s", 1800, far.key), far.key, rule)],
    }),
    ...(rule === "ignore" && { changesNothing: true }),
  })),
]);

const removals = BOTH.flatMap((elements): Scenario[] => {
  const state = delayedState(elements, b, c, far, further);
  const rules = ["dead"] as const;
  const both = [b, further];
  const elementsOf = both.map((one) => ({ element: bytes(ELEMENT[elements](one)) }));
  const byId = both.map((one) => ({ id: bytes(one.address), key: "" }));
  const byKey = both.map(({ key }) => ({ id: "", key }));
  const equal = ["v", "w", "x"].map((payload) => message(payload, 1900, `key of ${payload}`));
  return [
    {
      script: remove,
      elements,
      when: "among equal deadlines",
      seed: seeded(delayedState(elements, ...equal), {
        args: {},
        rows: equal.slice(1).map(({ key }) => ({ id: "", key })),
      }),
      rules,
    },
    {
      script: removeElements,
      elements,
      seed: seeded(state, { args: {}, rows: elementsOf }),
      rules,
    },
    {
      script: remove,
      elements,
      when: "by id",
      seed: seeded(state, { args: {}, rows: byId }),
      rules,
    },
    {
      script: remove,
      elements,
      when: "by key",
      seed: seeded(state, { args: {}, rows: byKey }),
      rules,
    },
  ];
});

const reschedules = BOTH.flatMap((elements): Scenario[] => {
  const state = delayedState(elements, c, far, further);
  const rules = ["dead"] as const;
  const args = { ...CHANNEL, delay: "", deadline: 1200 };
  return [
    {
      script: reschedule,
      elements,
      when: "by id",
      seed: seeded(state, { args: { ...args, id: bytes(far.address), key: "" } }),
      rules,
    },
    {
      script: reschedule,
      elements,
      when: "by key",
      seed: seeded(state, { args: { ...args, id: "", key: far.key } }),
      rules,
    },
  ];
});

/** Resolves once the consumer {@link DEAD} has been silent for as long as its name says. */
async function untilDead({ redis, keys }: Streams): Promise<void> {
  await eventually(async () => {
    const [fields = []] = (await redis.xinfo("CONSUMERS", keys.stream, "g")) as unknown[][];
    return Number(fields[fields.indexOf("idle") + 1]) > 1;
  });
}

/** Half of the insertion order in the compacted list. */
const compacting = (elements: Elements, ...extra: string[]): QueueState => ({
  ...delayedState(elements, far, further),
  compacted: [c, far].map(ELEMENT[elements]),
  order: [b, further].map(ELEMENT[elements]).concat(extra),
});

const tidying: Scenario[] = [
  {
    script: tidyAddresses,
    when: "trimming",
    seed: seeded(
      { ...delayedState("addresses", far), order: [a, b, far].map(asAddress) },
      { args: { step: 2, thorough: 0 } },
    ),
  },
  {
    script: tidyAddresses,
    when: "compacting",
    seed: seeded(compacting("addresses"), { args: { step: 10, thorough: 1 } }),
    partly: "live elements are in both lists until the second run",
  },
  {
    script: tidyAddresses,
    when: "the queue is empty",
    seed: seeded(
      { order: ["x"], compacted: ["y"], businessKeys: { z: "z" } },
      { args: { step: 10, thorough: 0 } },
    ),
  },
  {
    script: tidyMembers,
    seed: seeded(compacting("members", far.address), { args: { step: 10 } }),
    partly: "live elements are in both lists until the second run",
  },
  {
    script: tidyBusinessKeys,
    seed: seeded(
      { ...delayedState("addresses", far), businessKeys: { ...indexed(far, b), c: "no entry" } },
      { args: { cursor: "0", step: 100 } },
    ),
  },
];

const polls: Scenario[] = [
  {
    script: pollOldest,
    seed: seeded(delayedState("addresses", b, far, further), {
      args: { limit: 2, step: 100, maxBytes: 1000 },
    }),
    rules: ["dead"],
  },
  {
    script: pollNewestTo,
    seed: seeded(
      { ...delayedState("addresses", b, far), order: [b, far, c].map(asAddress) },
      { args: { step: 100 } },
    ),
    rules: ["dead"],
  },
  {
    script: clearDelayed,
    seed: seeded({ ...delayedState("addresses", b, far), compacted: ["x"] }, { args: {} }),
  },
];

const before = { a: "x".repeat(24), p: "before" };
/** Messages that are dropped when they are due. Where Redis refuses to look at a key, its message is delivered. */
const [late, later] = [
  message("u", 1500, "key u", { deliverWithin: 10 }),
  message("v", 2500, "", { deliverWithin: 10 }),
];
const transfers = BOTH.flatMap((elements) =>
  [transfer, sweep, pacedTransfer, pacedSweep].flatMap((family): Scenario[] => {
    const isPaced = family === pacedTransfer || family === pacedSweep;
    const args = {
      limit: 100,
      grace: 0,
      claim: 1,
      task: "me",
      known: 0,
      makes: 1,
      mark: 1,
      shares: 1,
      arriving: "",
    };
    const flow = { kind: "paced", step: "1000", burst: "1000" };
    const state: QueueState = {
      ...(isPaced && { flow }),
      ...delayedState(elements, a, b, c, far, further),
      timeouts: [["no message", 500], ...[a, b, c, far, further].map(({ delayed }) => delayed)],
    };
    const stream = { ...state, stream: [before] };
    const retries: QueueState = {
      retries: [
        [retryName(message("r", 500), "g"), 700],
        ["broken", 800],
        [retryName(far, "g"), FAR],
      ],
      retrying: {
        [retryName(message("r", 500), "g")]: packRetry({ payload: "r", key: "" }, 2),
        broken: "broken",
        [retryName(far, "g")]: packRetry(far, 1),
      },
    };
    const rules = ["dead", "mover", "listed", "flow"] as const;
    const partly = "what has moved has moved, and the next run returns the refusal";
    return [
      { script: family.list, elements, seed: seeded(state, { args }), rules, partly },
      {
        script: family.list,
        elements,
        when: "all are due",
        seed: seeded({ ...(isPaced && { flow }), ...delayedState(elements, a, b, c) }, { args }),
        rules,
        partly,
      },
      {
        script: family.list,
        elements,
        when: "there is a stream",
        seed: seeded(stream, { args }),
        rules,
        partly,
      },
      {
        script: family.stream,
        elements,
        seed: seeded({ ...stream, ...retries }, { args }),
        rules,
        partly,
      },
    ];
  }),
);

const inTurns = BOTH.flatMap((elements) =>
  (elements === "members"
    ? [pacedTransfer.list]
    : [pacedTransfer.list, pacedTransfer.stream, pacedSweep.list]
  ).map((script): Scenario => ({
    script,
    when: "in lanes",
    elements,
    seed: seeded(
      {
        ...delayedState(elements, a, b, far),
        ...waitingState,
        businessKeys: indexed(b, w, far),
        flow: LANES,
        ...(script === pacedTransfer.stream && {
          stream: [before],
          retries: [[retryName(c, "g"), 900]],
          retrying: { [retryName(c, "g")]: packRetry(c, 2) },
        }),
      },
      {
        args: {
          limit: 100,
          grace: 0,
          claim: 1,
          task: "me",
          known: 0,
          makes: 1,
          mark: 1,
          shares: 1,
          arriving: "",
        },
      },
    ),
    rules: ["dead", "mover", "listed", "flow", "rests", "turns"],
    partly: "what has moved or waits has left, and the next run returns the refusal",
  })),
);

const ownLanes = BOTH.map((elements): Scenario => ({
  script: elements === "members" ? pacedTransfer.list : pacedTransfer.stream,
  when: "runs of a schedule wait for each other",
  elements,
  seed: seeded(
    {
      // Without their limit, and before the others, they go as they do if Redis lacks the flow.
      flow: { kind: "lanes", only: "1", ahead: "1e15", [`own:${OWN}`]: "1" },
      ...delayedState(elements, ownFirst, ownSecond, b, c, far),
      businessKeys: indexed(ownFirst, b, far),
      ...(elements === "addresses" && { stream: [before] }),
    },
    {
      args: {
        limit: 100,
        grace: 0,
        claim: 1,
        task: "me",
        known: 0,
        makes: 1,
        mark: 1,
        shares: 1,
      },
    },
  ),
  rules: ["dead", "mover", "listed", "flow", "rests", "turns"],
  partly: "what has moved or waits has left, and the next run returns the refusal",
}));

const conditions = (["list", "stream"] as const).map((into): Scenario => ({
  script: transfer[into],
  when: "conditions do not hold",
  seed: seeded(
    {
      ...delayedState("addresses", a, late, b, later, far),
      ...(into === "stream" && { stream: [before] }),
    },
    { args: { limit: 100, grace: 0, claim: 1, task: "me", known: 0, makes: 1, mark: 1 } },
  ),
  rules: ["dead", "mover", "listed", "dropped"],
  partly: "what has moved or was dropped is done, and the next run returns the refusal",
}));

/* Partitions. */

const member = "s1:one";
const holder = { holder: "p1", fence: "4", until: String(NOW + 5000), group: "g" };
const owner = { process: "p1", fence: "4" };
const BATCH = 1_800_000_000_000_000;

const facts: Scenario[] = [
  { script: createFact, seed: seeded({}, { args: { fact: "1:2:2:stable:1", notice: "n" } }) },
  {
    script: advanceFact,
    seed: seeded(
      { partitions: "1:2:2:stable:1" },
      { args: { fact: "2:3:2:moving:1", notice: "n" } },
    ),
  },
  {
    script: changeFact,
    seed: seeded(
      { partitions: "1:2:2:stable:1" },
      { args: { fact: "2:3:2:moving:1", notice: "n", expected: "1:2:2:stable:1" } },
    ),
  },
  {
    script: noteDone,
    seed: seeded(
      { partitions: "2:3:2:moving:1" },
      { args: { fact: "2:3:2:moving:1", done: "2:3:2:moving:1:done" } },
    ),
  },
  {
    script: beginChange,
    seed: seeded(
      { partitions: "1:2:2:stable:1", members: [member], holder: { group: "g" } },
      {
        args: {
          fact: "2:3:2:moving:1",
          holding: "2:3:2:holding:1",
          notice: "n",
          expected: "1:2:2:stable:1",
          timeout: 7000,
        },
      },
    ),
    rules: ["began"],
  },
  {
    script: guarded(offer),
    seed: seeded(
      { ...delayedState("addresses", far), partitions: "1:2:2:stable:1" },
      { args: { ...CHANNEL, knownFact: "2:3:2:moving:1" }, rows: [n, o].map(offered) },
    ),
    rules: ["dead", "twice"],
    partly: "the newer fact is stored first, and stays",
  },
  {
    script: attend,
    seed: seeded(
      { partitions: "1:2:2:stable:1", members: ["s1:long gone"] },
      { args: { member, timeout: 7000, gone: 0 } },
    ),
    partly: "members that were not seen lately are dropped first",
  },
];

const holds: Scenario[] = [
  {
    script: hold,
    unmended: ["hdel"],
    seed: seeded(
      {
        holder: {
          ...holder,
          until: "1",
          connection: "5 one",
          consumer: "c1",
          orphans: "c0",
          stale: "",
        },
      },
      { args: { process: "p2", duration: 2500, group: "g", past: 9e15 } },
    ),
  },
  {
    script: renewHold,
    seed: seeded({ holder }, { args: { ...owner, duration: 2500 } }),
  },
  {
    script: noteHold,
    seed: seeded({ holder }, { args: { ...owner, connection: "7 x" } }),
  },
  {
    script: releaseHold,
    unmended: ["hdel"],
    seed: async (queue) => {
      await queue.addGroup("g");
      await queue.add("a");
      await queue.deliver("g", "c1");
      await queue.seed({ holder: { ...holder, connection: "7 x", consumer: "c1" } });
      return { args: owner };
    },
  },
  {
    script: inherit,
    partly: "the consumer is noted first",
    seed: async (queue) => {
      await queue.addGroup("g");
      await queue.add("a", { p: "b", n: "8" }, "c");
      await queue.deliver("g", "c1", 2);
      await queue.seed({ holder: { ...holder, orphans: "c1" } });
      return {
        args: { ...owner, group: "g", consumer: "c2", maxAttempts: 9, limit: 100 },
        rows: [{ orphan: "c1", counted: 1 }],
      };
    },
  },
  { script: raiseFence, seed: seeded({ holder }, { args: { fence: 9 } }) },
];

const places = { own: 0, buckets: allTo(1) };
const withRetry: QueueState = {
  retries: [
    [retryName(far, "g"), FAR],
    [retryName(c, "g"), FAR + 1],
  ],
  retrying: { [retryName(far, "g")]: packRetry(far, 1), [retryName(c, "g")]: packRetry(c, 1) },
};
/** As `withRetry`, in a group that exists, and `far` holds its key. */
const holding: QueueState = { ...withRetry, groups: ["g"], businessKeys: indexed(far) };
const row = (kind: string, score: number | string, name: string, value: string) => ({
  kind,
  score,
  name: bytes(name),
  value: bytes(value),
});

const migrations: Scenario[] = [
  {
    script: pullOut,
    when: "by key",
    seed: seeded(delayedState("addresses", b, far), {
      args: places,
      rows: [b, far].map(({ key }) => ({ id: "", key, member: "" })),
    }),
    rules: ["dead", "journal"],
  },
  {
    script: pullOut,
    when: "by member",
    seed: seeded(delayedState("addresses", b, far), {
      args: places,
      rows: [b, far].map(({ member: one }) => ({ id: "", key: "", member: bytes(one) })),
    }),
    rules: ["dead", "journal"],
  },
  {
    script: pullOut,
    when: "by id",
    seed: seeded(
      { ...delayedState("addresses", b), ...withRetry, groups: ["g"] },
      {
        args: places,
        rows: [b, far].map(({ address }) => ({ id: bytes(address), key: "", member: "" })),
      },
    ),
    rules: ["dead", "journal"],
  },
  {
    script: pullOut,
    when: "retries by key",
    seed: seeded(holding, {
      args: places,
      rows: [far].map(({ key }) => ({ id: "", key, member: "" })),
    }),
    rules: ["dead", "journal"],
  },
  {
    script: pushIn,
    when: "a retry with a key",
    seed: seeded(
      { ...delayedState("addresses", further), groups: ["g"] },
      {
        args: { ...CHANNEL, source: 0, number: BATCH },
        rows: [row("retry", FAR, retryName(b, "g"), packRetry(b, 1))],
      },
    ),
  },
  ...(["by page", "by key", "by id"] as const).map((how): Scenario => ({
    script: how === "by page" ? pullOutPage : pullOut,
    when: `what waits, ${how}`,
    seed: seeded(
      waitingState,
      how === "by page"
        ? { args: { ...places, cursor: "t", limit: 100, maxBytes: 10_000 } }
        : {
            args: places,
            rows: [
              how === "by id"
                ? { id: bytes(w.address), key: "", member: "" }
                : { id: "", key: w.key, member: "" },
            ],
          },
    ),
    rules: ["dead", "journal"],
  })),
  ...["", "r"].map((cursor): Scenario => ({
    script: pullOutPage,
    when: cursor === "" ? "messages" : "retries",
    seed: seeded(
      { ...delayedState("addresses", b, further), ...withRetry },
      { args: { ...places, cursor, limit: 100, maxBytes: 10_000 } },
    ),
    rules: ["dead", "journal"],
  })),
  {
    script: pushIn,
    seed: seeded(
      {
        ...delayedState("addresses", further),
        groups: ["g"],
        ready: ["x"],
        journal: { last: "5" },
      },
      {
        args: { ...CHANNEL, source: 0, number: BATCH },
        rows: [
          row("message", far.deadline, far.member, indexEntry(far).slice(24)),
          row("message", b.deadline, b.member, ""),
          row("retry", FAR, retryName(c, "g"), packRetry(c, 1)),
          row("entry", "1", retryName(o, "g"), packRetry(o, 2)),
          row("entry", "", retryName(n, "new"), packRetry(n, 0)),
          row("ready", "", "", "y"),
          row("quarantine", "", "", "q"),
          row("unreadable", "", "", "u"),
          row("dead", "", "", "\x94\xa1a\xa1x\xa1p\xa1y"),
        ],
      },
    ),
    rules: ["dead"],
    partly: "a group that was created stays",
  },
  {
    script: raisePaces,
    seed: seeded(
      { lanePaces: [["a", 9e15]] },
      {
        args: {},
        rows: [
          { name: "a", used: 5 },
          { name: "b", used: 7 },
        ],
      },
    ),
    rules: ["rests"],
  },
  {
    script: dropBatch,
    seed: seeded({ journal: { last: String(BATCH), rows: "rows" } }, { args: { number: BATCH } }),
  },
  {
    script: dropBatch,
    when: "the number is lost",
    seed: seeded({ journal: { rows: "rows" } }, { args: { number: NOW * 1000 + 1 } }),
    partly: "the batch has a new number",
  },
  {
    script: drainPage,
    rules: ["journal"],
    partly: "the batch is open, and the next run returns it",
    seed: async (queue) => {
      await queue.addGroup("g", "h");
      await queue.add("a", { p: "b", n: "2" });
      await queue.deliver("g", DEAD);
      await untilDead(queue);
      await queue.add({ p: "c", g: "h" }, { what: "foreign" });
      await queue.seed({
        ready: ["r1", "r2"],
        quarantine: ["q"],
        unreadable: ["u"],
        dead: [
          ["1-0", "a", a.address, "p", "a", "g", "g"],
          ["2-0", "what", "is this"],
        ],
      });
      const page = { limit: 100, maxBytes: 100_000, into: 2, buckets: allTo(1), timeout: 60_000 };
      const first = { epoch: 2, after: "", letter: "", fenced: "" };
      return { args: { ...page, ...first, own: 0, isRemoved: 1 } };
    },
  },
  {
    script: removeRemains,
    seed: seeded(
      {
        order: ["x"],
        compacted: ["x"],
        businessKeys: { x: "x" },
        paused: "1",
        retrying: { x: "x" },
        groups: ["g"],
        journal: { last: "7" },
        flow: { kind: "lanes" },
        turns: [["x", 0]],
        lanes: [["x", 0]],
        resting: [["x", 0]],
        lanePaces: [["x", 0]],
      },
      { args: {} },
    ),
  },
];

/* Whole queues, and the ready LIST. */

const whole: Scenario[] = [
  ...BOTH.flatMap((elements): Scenario[] => [
    {
      script: makePlain,
      elements,
      rules: ["dead", "keyless"],
      when: "retries",
      seed: async (queue) => {
        await queue.addGroup("g", "h");
        await queue.add("a", "b");
        const broken = { retries: [["broken", 800]], retrying: { broken: "broken" } } as const;
        await queue.seed(withRetry);
        await queue.seed(broken);
        return { args: { ...CHANNEL, limit: 100, timeout: 60_000 } };
      },
    },
    {
      script: makePlain,
      elements,
      when: "the stream",
      partly: "there is no retry, so everything in `retrying` is dropped first",
      seed: async (queue) => {
        await queue.addGroup("g");
        await queue.add("a", "b", { what: "foreign" }, "c");
        await queue.add({ p: "d", u: String(NOW + 1000) });
        await queue.deliver("g", DEAD, 2);
        await queue.redis.xack(
          queue.keys.stream,
          "g",
          (await queue.deliver("g", DEAD, 1))[0] ?? "",
        );
        await untilDead(queue);
        return { args: { ...CHANNEL, limit: 100, timeout: 60_000 } };
      },
    },
  ]),
  {
    script: setFlow,
    seed: seeded(
      { flow: { kind: "paced", step: "1000", burst: "5" } },
      {
        args: {
          ...CHANNEL,
          kind: "paced",
          step: 2000,
          burst: 3,
          declared: "text",
          isEmpty: 0,
          ahead: 100,
          most: 0,
          lane: "0 0 1 0",
          rates: 0,
          slots: 0,
        },
      },
    ),
  },
  {
    script: setFlow,
    when: "messages wait in lanes, and rest",
    seed: seeded(
      { ...waitingState, flow: { ...LANES, rates: "1", turn: "3", "lane:old": "5 1 1 0" } },
      {
        args: {
          ...CHANNEL,
          kind: "none",
          step: 0,
          burst: 0,
          declared: "",
          isEmpty: 0,
          ahead: 100,
          most: 0,
          lane: "0 0 1 0",
          rates: 0,
          slots: 0,
        },
      },
    ),
    rules: ["rests"],
  },
  {
    script: pinLane,
    seed: seeded(
      {
        ...waitingState,
        flow: { ...LANES, declared: "text", "pin:c": "5 1 1 0 {}", "lane:c": "5 1 1 0" },
      },
      {
        args: {
          ...CHANNEL,
          kind: "lanes",
          step: 0,
          burst: 0,
          declared: "text",
          isEmpty: 0,
          ahead: 100,
          most: 0,
          lane: "1000 5 1 0",
          rates: 1,
          slots: 0,
          pinned: "b",
          pin: 'paused {"paused":true}',
        },
      },
    ),
    rules: ["rests"],
  },
  {
    script: holdLane,
    seed: seeded({ ...waitingState, flow: LANES }, { args: { name: "b", duration: 1000 } }),
    rules: ["holds"],
  },
  {
    script: freeSlots,
    seed: async (queue) => {
      await queue.seed({ ...waitingState, flow: { ...LANES, look: "9000000000000" } });
      return { args: CHANNEL, rows: [{ name: "c" }] };
    },
    rules: ["rests"],
  },
  {
    script: setFlow,
    when: "it ends",
    seed: seeded(
      { flow: { kind: "paced" } },
      {
        args: {
          ...CHANNEL,
          kind: "none",
          step: 0,
          burst: 0,
          declared: "",
          isEmpty: 0,
          ahead: 100,
          most: 0,
          lane: "0 0 1 0",
          rates: 0,
          slots: 0,
        },
      },
    ),
  },
  {
    script: setPaused,
    when: "pausing",
    seed: seeded({ ready: ["x"] }, { args: { ...CHANNEL, isPaused: 1, reason: "" } }),
  },
  {
    script: setPaused,
    when: "resuming",
    seed: seeded({ paused: "1" }, { args: { ...CHANNEL, isPaused: 0, reason: "" } }),
  },
  {
    script: noteActivity,
    seed: seeded({ activity: ["a"] }, { args: { entry: "b" } }),
    partly: "how long the log is kept is set first",
  },
  {
    script: noteHistory,
    seed: seeded(
      {},
      { args: { delayed: 3, ready: 0, inFlight: 1, retries: 0, dead: 2, finished: 7, late: 40 } },
    ),
  },
  {
    script: retire,
    seed: seeded({ mover: "me" }, { args: { ...CHANNEL, task: "me" } }),
    rules: ["mover", "listed"],
  },
];

const listed: QueueState = { ready: ["x", "y"], quarantine: ["q", "r"], unreadable: ["u"] };
const lists: Scenario[] = [
  { script: clearQuarantine, seed: seeded(listed, { args: {} }) },
  { script: clearReady, seed: seeded(listed, { args: {} }) },
  {
    script: giveBack,
    seed: seeded(
      { ...listed, receipts: ["other"] },
      { args: { receipt: "mine" }, rows: [{ payload: "m" }, { payload: "n" }] },
    ),
    partly: "receipts of dead callers are dropped first",
  },
  {
    script: popFromMany,
    seed: seeded(listed, ({ keys }) => ({
      args: { count: 3 },
      rows: [{ list: keys.ready }, { list: keys.quarantine }, { list: keys.unreadable }],
    })),
  },
  {
    script: pushReady,
    seed: seeded(listed, { args: {}, rows: [{ payload: "m" }, { payload: "n" }] }),
  },
  { script: requeue, seed: seeded(listed, { args: { limit: 10, maxBytes: 1000 } }) },
  { script: quarantineBytes, seed: seeded(listed, { args: { bytes: "z" } }) },
  ...[requeueQuarantined, removeQuarantined].map((script): Scenario => ({
    script,
    seed: seeded(listed, {
      args: { mark: "a mark" },
      rows: [
        { position: 0, digest: digestOf(bytes("q")) },
        { position: 1, digest: digestOf(bytes("another")) },
      ],
    }),
  })),
];

/* Streams. */

/** Three entries in flight for `c` in group `g`, the last one of a foreign format; one that is ready; one of another group. */
async function inFlight(queue: Streams): Promise<readonly string[]> {
  await queue.addGroup("g", "h");
  await queue.add("a", { p: "b", n: "2", g: "g" }, "e");
  await queue.redis.xadd(queue.keys.stream, "*", "what", "is this");
  const ids = await queue.deliver("g", "c");
  await queue.redis.xack(queue.keys.stream, "h", ...(await queue.deliver("h", "d")));
  await queue.add("later");
  return ids;
}
const mine = { group: "g", consumer: "c", heldCount: 100 };
const settling =
  (args: Call["args"], columns: Readonly<Record<string, ScriptArg>>): Scenario["seed"] =>
  async (queue) => {
    const ids = await inFlight(queue);
    const rows = ids.map((entry, i) => ({ entry, own: i === 1 ? 1 : 0, ...columns }));
    return { args, rows };
  };

const dead = { ...CHANNEL, group: "g", consumer: "c", idle: 0, maxAttempts: 2, limit: 100 };

const settlements: Scenario[] = [
  { script: ack, seed: settling(mine, {}), rules: ["finished"] },
  {
    script: ackAndNote,
    seed: settling(
      { ...mine, process: "host/1", keepFor: 60_000 },
      { address: bytes(a.address), key: "k", attempt: 1, took: "" },
    ),
    rules: ["finished", "handled"],
  },
  {
    script: ackOnce,
    seed: settling(
      { ...mine, process: "host/1", keepFor: 60_000 },
      { address: bytes(a.address), key: "k", attempt: 1, took: "", keepKey: 1000 },
    ),
    rules: ["finished", "handled", "once"],
  },
  { script: bury, seed: settling(mine, { reason: "r" }), rules: ["foreign"] },
  {
    script: giveBackEntries,
    seed: settling({ ...mine, ...CHANNEL }, { counted: 1, reason: "r" }),
    rules: ["foreign"],
  },
  {
    script: giveBackEntries,
    when: "some are held back",
    seed: async (queue) => {
      await queue.addGroup("g");
      await queue.add("a", { p: "b", n: "1", g: "g", u: String(NOW + 1000) }, "c");
      const ids = await queue.deliver("g", "c");
      const rows = ids.map((entry) => ({ entry, own: 1, counted: 0, reason: "" }));
      return { args: { ...mine, ...CHANNEL }, rows };
    },
    rules: ["returned"],
    partly: "what was given back before is given back",
  },
  {
    script: retryLater,
    seed: settling({ ...mine, ...CHANNEL }, { delay: 1000, counted: 1, reason: "r" }),
    rules: ["foreign"],
  },
  {
    script: again,
    seed: async (queue) => {
      const [entry = ""] = await inFlight(queue);
      return { args: { ...mine, entry, own: 0, delay: 1000, reason: "r" } };
    },
  },
  {
    script: reclaim,
    seed: async (queue) => {
      await inFlight(queue);
      return { args: dead };
    },
    rules: ["foreign"],
    partly: "what was reclaimed is reclaimed, and the next run returns the refusal",
  },
  {
    script: reclaim,
    when: "some are held back",
    seed: async (queue) => {
      await queue.addGroup("g");
      await queue.add("a", { p: "b", n: "1", g: "g", u: String(NOW + 1000) }, { p: "c", n: "5" });
      await queue.deliver("g", "c");
      return { args: dead };
    },
    partly: "what was reclaimed is reclaimed, and the next run returns the refusal",
  },
  {
    script: handOut,
    seed: async (queue) => {
      const [entry = ""] = await inFlight(queue);
      return { args: { group: "g", consumer: "c", entry, heldBackUntil: NOW + 1000 } };
    },
  },
  // They renew leases: nothing but times, which the states leave out.
  { script: extend, seed: settling({ group: "g", consumer: "c" }, {}), changesNothing: true },
  {
    script: beat,
    seed: async (queue) => {
      await inFlight(queue);
      return { args: { group: "g", consumer: "c", after: "", limit: 100, isReading: 0 } };
    },
    changesNothing: true,
  },
  {
    script: leave,
    seed: async (queue) => {
      await inFlight(queue);
      await queue.redis.xgroup("CREATECONSUMER", queue.keys.stream, "g", "idle");
      return { args: { group: "g", consumer: "idle" } };
    },
  },
  {
    script: openGroup,
    rules: ["knownGroups"],
    seed: seeded({}, { args: { ...CHANNEL, group: "g", start: "0" } }),
  },
  {
    script: takeOver,
    seed: seeded(
      { ready: ["x", "y", "z"], stream: [before] },
      { args: { makes: 1 }, rows: [n, o].map(({ id }) => ({ id: bytes(id) })) },
    ),
  },
  {
    // Has the function that appends an entry, but does not call it.
    script: streamPage,
    seed: async (queue) => {
      await inFlight(queue);
      return { args: { wanted: "", key: "", after: "", limit: 100, maxBytes: 10_000 } };
    },
    changesNothing: true,
  },
  {
    script: trim,
    seed: async (queue) => {
      await queue.addGroup("g");
      await queue.add("a", "b");
      await queue.redis.xack(queue.keys.stream, "g", ...(await queue.deliver("g", "c")));
      await queue.add("later");
      return { args: { limit: 100 } };
    },
  },
];

const letters: QueueState = {
  dead: [
    ["1-0", "a", far.address, "p", "f", "g", "g"],
    ["2-0", "what", "is this"],
    ["3-0", "a", far.address, "p", "f", "g", "h"],
    ["4-0", "a", c.address, "p", "c", "g", "g"],
  ],
};
const page = { after: "", last: "", limit: 100, maxBytes: 10_000 };
const failed: Scenario[] = [
  { script: clearDead, seed: seeded(letters, { args: {} }) },
  { script: removeDead, seed: seeded(letters, { args: { wanted: bytes(far.address), ...page } }) },
  {
    script: redrive,
    seed: seeded(
      { ...letters, ...delayedState("addresses", further) },
      { args: { ...CHANNEL, wanted: "", delay: 0, ...page } },
    ),
  },
  {
    script: redriveLetters,
    seed: seeded(
      { ...letters, ...delayedState("addresses", further) },
      { args: { ...CHANNEL, delay: 0 }, rows: [{ entry: "1-0" }, { entry: "4-0" }] },
    ),
  },
  {
    script: removeLetters,
    seed: seeded(letters, { args: {}, rows: [{ entry: "2-0" }, { entry: "3-0" }] }),
  },
  { script: clearRetries, seed: seeded(withRetry, { args: {} }) },
  ...BOTH.flatMap((elements): Scenario[] => [
    {
      script: remove,
      elements,
      when: "retries, and a delayed message",
      seed: seeded(
        { ...holding, ...delayedState(elements, b), businessKeys: indexed(far, b) },
        {
          args: {},
          rows: [
            { id: "", key: far.key },
            { id: bytes(c.address), key: "" },
            { id: bytes(b.address), key: "" },
          ],
        },
      ),
      rules: ["dead"],
      ...(elements === "members" && { partly: "the messages have left, and their elements stay" }),
    },
    {
      script: reschedule,
      elements,
      when: "a retry",
      seed: seeded(holding, {
        args: { ...CHANNEL, id: "", key: far.key, delay: "", deadline: 1200 },
      }),
    },
    {
      script: offerKeyed,
      elements,
      when: "replacing a retry",
      seed: seeded(holding, {
        args: CHANNEL,
        rows: [offeredAs(n, far.key, "replace"), offeredAs(o, "another", "ignore")],
      }),
      rules: ["dead"],
      partly: NOT_TAKEN_BACK,
      isTold: true,
    },
  ]),
  {
    script: retryLater,
    when: "with a key",
    seed: async (queue) => {
      await queue.addGroup("g");
      await queue.add({ p: "b", t: "key of b" }, { p: "c", t: "key of c" });
      const ids = await queue.deliver("g", "c");
      const rows = ids.map((entry) => ({ entry, own: 0, delay: 1000, counted: 1, reason: "r" }));
      return { args: { ...mine, ...CHANNEL }, rows };
    },
    rules: ["keyless"],
  },
  {
    script: redrive,
    when: "with a key",
    seed: seeded(
      { dead: [["1-0", "a", far.address, "p", "f", "g", "g", "t", far.key]] },
      { args: { ...CHANNEL, wanted: "", delay: 0, ...page } },
    ),
    rules: ["keyless"],
  },
];

/** One scenario or more for each script that writes. */
const scheduled = (elements: Elements): QueueState => ({
  ...delayedState(elements, b, far, further),
  schedules: { s: "aa|old\n", "\0set": "3" },
  planning: [["s", 1000]],
  running: { s: "1-1" },
});

const ROW = { member: "", deadline: "", key: "", address: "" };
const placed = (one: Message) => ({
  ...ROW,
  member: bytes(one.member),
  deadline: one.deadline,
  key: one.key,
});
const PLANNED = {
  ...CHANNEL,
  name: "s",
  expected: "aa",
  record: "bb|new\n",
  planAt: 2000,
  asOf: NOW,
  set: "set",
  setRevision: 3,
  isWaking: 0,
  isOrdinary: 1,
  ownLane: "",
  formerLane: "",
  leftLane: "",
};

const schedules = BOTH.flatMap((elements): Scenario[] => [
  {
    script: restorePlanning,
    partly: "the schedules are to be planned, and only their number is not told",
    seed: seeded({ schedules: { nightly: "record", hourly: "record" } }, { args: {} }),
  },
  {
    script: planSchedule,
    elements,
    when: "placing and withdrawing",
    rules: ["dead", "keyless"],
    seed: seeded(scheduled(elements), {
      args: PLANNED,
      rows: [{ ...ROW, address: bytes(far.address) }, ...[n, { ...o, key: "key o" }].map(placed)],
    }),
    partly: "placed messages stay if Redis refuses the record, and then to take them back",
  },
  {
    script: planSchedule,
    elements,
    when: "the first time",
    rules: ["dead", "keyless"],
    seed: seeded(delayedState(elements, far), {
      args: { ...PLANNED, expected: "", isWaking: 1 },
      rows: [placed(n)],
    }),
    partly: "placed messages stay if Redis refuses the record, and then to take them back",
  },
  {
    script: planSchedule,
    elements,
    when: "removing",
    rules: ["dead", "unplanned"],
    seed: seeded(scheduled(elements), {
      args: { ...PLANNED, record: "", planAt: "+inf" },
      rows: [{ ...ROW, address: bytes(far.address) }],
    }),
  },
  {
    script: planSchedule,
    elements,
    when: "the first time, with a lane of its own",
    rules: ["dead", "keyless", "look"],
    seed: seeded(delayedState(elements, far), {
      args: { ...PLANNED, expected: "", isWaking: 1, ownLane: OWN },
      rows: [placed(n)],
    }),
    partly:
      "placed messages and the lane stay if Redis refuses the record, and then to take them back",
  },
  {
    script: planSchedule,
    elements,
    when: "removing one whose runs wait for each other",
    rules: ["dead", "unplanned", "ownLane"],
    seed: seeded(
      { ...ownState, ...scheduled(elements), businessKeys: indexed(b, far, further, ownWaits) },
      {
        args: { ...PLANNED, record: "", planAt: "+inf", formerLane: OWN, leftLane: OWN },
        rows: [{ ...ROW, address: bytes(far.address) }],
      },
    ),
  },
  {
    script: planSchedule,
    elements,
    when: "its runs wait for each other no more, and a user's lanes stay",
    rules: ["dead", "keyless", "ownLane"],
    seed: seeded(
      { ...ownState, ...scheduled(elements), flow: { ...besideUsers, ...LANES } },
      { args: { ...PLANNED, formerLane: OWN }, rows: [placed(n)] },
    ),
    partly: "placed messages stay if Redis refuses the record, and then to take them back",
  },
  {
    script: planSchedule,
    elements,
    when: "stale",
    changesNothing: true,
    seed: seeded(scheduled(elements), { args: { ...PLANNED, expected: "ab" }, rows: [] }),
  },
]);

/** A message that was offered with `once`, and was handled. */
const handledOnce = message("h", 1000, "key h", { once: 0 });
const remembered: QueueState = {
  once: { [handledOnce.key]: onceRecord(handledOnce, { at: NOW - 1000 }) },
  onceEnds: [[handledOnce.key, NOW + 59_000]],
};

const onces: Scenario[] = [
  {
    script: offerKeyed,
    when: "once, with a key that is free again",
    rules: ["dead"],
    partly: NOT_TAKEN_BACK,
    isTold: true,
    seed: seeded(
      { ...delayedState("addresses", far), ...remembered },
      {
        args: CHANNEL,
        rows: [offeredAs(message("i", 1500, "key h", { once: 0 }), "key h", "once")],
      },
    ),
  },
  {
    script: offerKeyed,
    when: "once, with a key that is taken",
    changesNothing: true,
    seed: seeded(
      { once: { "key h": onceRecord(handledOnce, { at: NOW - 1000, keepFor: 5000 }) } },
      {
        args: CHANNEL,
        rows: [offeredAs(message("i", 1500, "key h", { once: 0 }), "key h", "once")],
      },
    ),
  },
  {
    script: transfer.stream,
    when: "what was offered with once",
    seed: async (queue) => {
      await queue.addGroup("g");
      await queue.seed(delayedState("addresses", handledOnce, far));
      return {
        args: { limit: 100, grace: 0, claim: 1, task: "me", known: 0, makes: 1, mark: 1 },
      };
    },
    rules: ["dead", "mover", "once", "knownGroups"],
    partly: "what was moved before is ready",
  },
  {
    script: forgetOnce,
    seed: seeded(
      {
        once: {
          [handledOnce.key]: onceRecord(handledOnce, { at: NOW - 60_000 }),
          later: onceRecord(far, { at: NOW, keepFor: 60_000 }),
        },
        onceEnds: [
          [handledOnce.key, NOW],
          ["later", NOW - 1],
        ],
      },
      { args: { limit: 10 } },
    ),
    rules: ["once"],
  },
  {
    script: pullOutOnce,
    seed: seeded(remembered, { args: { ...places, limit: 10 } }),
    rules: ["journal"],
  },
  {
    script: pushIn,
    when: "what is remembered of a key",
    seed: seeded(delayedState("addresses", far), {
      args: { ...CHANNEL, source: 0, number: BATCH },
      rows: [row("once", "", "key h", onceRecord(handledOnce, { at: NOW }))],
    }),
    rules: ["onceEnds"],
  },
];

const sets: Scenario[] = [
  {
    script: pullOutSchedules,
    seed: seeded(scheduled("addresses"), {
      args: { own: 0 },
      rows: [{ schedule: "s", to: 1 }],
    }),
    rules: ["journal"],
  },
  {
    script: pushIn,
    when: "a schedule",
    seed: seeded(delayedState("addresses", far), {
      args: { ...CHANNEL, source: 0, number: BATCH },
      rows: [row("schedule", 1000, "s", "aa|new\n"), row("schedule", Infinity, "t", "bb|new\n")],
    }),
  },
  {
    script: raiseSet,
    seed: seeded(scheduled("addresses"), { args: { set: "set", revision: 4, isOrdinary: 1 } }),
  },
];

const wanted = (id: Buffer | "", key = "") => {
  return { id, key, entries: "", letters: "", reason: "r" };
};
const REVOKING = { ...CHANNEL, notices: "notices", isFirst: 1, after: "", afterDead: "" };

const revocations: Scenario[] = [
  {
    script: revoke,
    when: "wherever they are",
    seed: async (queue) => {
      const [held, waits] = [message("i", 1000, "key i"), message("r", 1000, "key r")];
      await queue.addGroup("g", "h");
      await queue.seed({
        ...waitingState,
        ...delayedState("addresses", far),
        businessKeys: indexed(w, far, waits),
        flow: LANES,
        retries: [[retryName(waits, "h"), FAR]],
        retrying: { [retryName(waits, "h")]: packRetry(waits, 1) },
        dead: [["1-1", "a", a.address, "p", "a", "n", "1", "g", "g", "r", "no"]],
      });
      await queue.add({ a: held.address, p: "i", t: held.key, l: "1" }, "z");
      await queue.deliver("g", "c");
      const keys = [held, waits, far, w].map(({ key }) => wanted("", key));
      return { args: REVOKING, rows: [...keys, wanted(bytes(a.address))] };
    },
    rules: ["dead", "rests", "turns"],
  },
  ...BOTH.map((elements): Scenario => ({
    script: revoke,
    when: `delayed, in an order of ${elements}`,
    elements,
    seed: seeded(delayedState(elements, b, far, further), {
      args: REVOKING,
      rows: [wanted(bytes(b.address)), wanted("", far.key)],
    }),
    rules: ["dead"],
  })),
  {
    script: revoke,
    when: "gone",
    changesNothing: true,
    seed: seeded(delayedState("addresses", far), {
      args: REVOKING,
      rows: [wanted(bytes(b.address)), wanted("", "key of none")],
    }),
  },
];

/** What a partition holds, and what a caller with the same fact says. */
const FACT = "1:2:2:stable:1";
const INTO = { toChannel: "wake-ups", toElements: "addresses", toFact: FACT, toPartition: 0 };
const landing = (one: Message) => {
  return { ...offered(one), newKey: one.key, rule: one.key === "" ? "" : "ignore", maxWait: "" };
};
const exchanged = (old: Message, one: Message) => ({
  id: bytes(old.address),
  key: "",
  ...landing(one),
});
const next = (of: string, one: Message) => ({ of, ...landing(one) });
const acksOf = (ids: readonly string[]) =>
  rowsAsArgs(
    ack,
    ids.map((entry, i) => ({ entry, own: i === 1 ? 1 : 0 })),
  );
const notesOf = (ids: readonly string[]) => {
  const note = { address: bytes(a.address), key: "k", attempt: 1, took: "" };
  const rows = ids.map((entry, i) => ({ entry, own: i === 1 ? 1 : 0, ...note }));
  return { process: "host/1", keepFor: 60_000, ...rowsAsArgs(ackAndNote, rows) };
};
const endsOf = (ids: readonly string[]) => {
  const note = { address: bytes(a.address), key: "k", attempt: 1, took: "", keepKey: 1000 };
  const rows = ids.map((entry, i) => ({ entry, own: i === 1 ? 1 : 0, ...note }));
  return { process: "host/1", keepFor: 60_000, ...rowsAsArgs(ackOnce, rows) };
};
const follows = (more: (ids: readonly string[]) => Call["args"]): Scenario["seed"] => {
  return async (queue) => {
    await queue.seed({ ...delayedState("addresses", far), partitions: FACT });
    const ids = await inFlight(queue);
    const [first = "", second = ""] = ids;
    const rows = [next(first, n), next(first, o), next(second, message("s", 1700, far.key))];
    return { args: { ...mine, ...INTO, ...more(ids.slice(0, 2)) }, rows };
  };
};
const NEITHER_TAKEN_BACK =
  "the new message is stored beside the old one: the wake-up was refused, and then to take it back";

const exchanges: Scenario[] = [
  ...BOTH.map((elements): Scenario => ({
    script: exchange,
    elements,
    rules: ["dead"],
    partly: NEITHER_TAKEN_BACK,
    seed: seeded(delayedState(elements, b, far, further), {
      args: { ...INTO, toElements: elements },
      rows: [exchanged(b, n), exchanged(far, message("s", 1700, further.key))],
    }),
  })),
  {
    script: exchangeIntoPartition,
    when: "the same key",
    rules: ["dead"],
    partly: NEITHER_TAKEN_BACK,
    seed: seeded(
      { ...delayedState("addresses", far, further), partitions: FACT },
      { args: INTO, rows: [exchanged(far, message("n", 1500, far.key))] },
    ),
  },
  ...[
    { when: "a retry", rows: [exchanged(far, message("n", FAR + 2, far.key))] },
    { when: "one that waits for its turn", rows: [exchanged(w, message("o", FAR + 3, w.key))] },
  ].map(({ when, rows }): Scenario => ({
    script: exchange,
    when,
    rules: ["dead", "turns", "look", "rests"],
    partly: NEITHER_TAKEN_BACK,
    seed: seeded(
      {
        ...waitingState,
        businessKeys: indexed(w, far),
        flow: LANES,
        groups: ["g"],
        retries: [[retryName(far, "g"), FAR]],
        retrying: { [retryName(far, "g")]: packRetry(far, 1) },
      },
      { args: INTO, rows },
    ),
  })),
  ...[ackAndOffer, ackAndOfferIntoPartition].flatMap((forms): Scenario[] => [
    {
      script: forms.ack,
      seed: follows(acksOf),
      rules: ["dead", "finished"],
      partly: NEITHER_TAKEN_BACK,
      isTold: true,
    },
    {
      script: forms.ackAndNote,
      seed: follows(notesOf),
      rules: ["dead", "finished", "handled"],
      partly: NEITHER_TAKEN_BACK,
      isTold: true,
    },
    {
      script: forms.ackOnce,
      seed: follows(endsOf),
      rules: ["dead", "finished", "handled", "once"],
      partly: NEITHER_TAKEN_BACK,
      isTold: true,
    },
  ]),
];

export const SCENARIOS = [
  ...exchanges,
  ...revocations,
  ...offers,
  ...removals,
  ...reschedules,
  ...tidying,
  ...polls,
  ...transfers,
  ...conditions,
  ...inTurns,
  ...ownLanes,
  ...facts,
  ...holds,
  ...migrations,
  ...whole,
  ...lists,
  ...settlements,
  ...failed,
  ...schedules,
  ...sets,
  ...onces,
] as readonly Scenario[];
