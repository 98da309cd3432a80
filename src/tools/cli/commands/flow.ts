import type {
  FlowOptions,
  FlowPreview,
  Lane,
  LaneState,
  PinnedLane,
  Rate,
} from "../../../index.ts";
import { hasLanes } from "../../../inside.ts";
import { flowInWords, laneInWords, pinInWords } from "../../view/flow-words.ts";
import { formatInstant } from "../../view/instants.ts";
import { formatCount, formatDistance } from "../../view/words.js";
import { parseChoice, parseCount, parseDuration, UsageError } from "../session/arguments.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { LIMIT } from "../session/message-view.ts";
import { quoted, type Column, type Output } from "../session/output.ts";
import { confirm } from "../session/session.ts";

export const flow = defineCommand({
  usage: "flow <queue> [--rate <rate>] [--lane-rate <rate>] [--clear]",
  help: `Shows how the messages of a queue become ready: at what rate, and in which lanes; how many
wait for their turn, and in which lanes most of them; how many of a lane are in hand, where
that is limited, and until when lanes rest. With options it changes the flow for
every process, at once and across restarts; what they do not name stays as it is.
  delayline due coupons --rate 50/s         what 50 a second would do
  delayline flow coupons --rate 50/s        sets it
  delayline flow notices --lane-rate 10/s   lanes take turns, each 10 a second
  delayline flow notices --order turns      lanes and priorities without a rate
  delayline flow notices --lane gold=weight=3 --lane trial=1/s
  delayline flow notices --pin acme=paused   whatever code sets, until --unpin`,
  words: [1, 1],
  options: {
    rate: { type: "string", value: "<rate>" },
    burst: { type: "string", value: "<count>" },
    concurrency: { type: "string", value: "<count>" },
    "lane-rate": { type: "string", value: "<rate>" },
    "lane-concurrency": { type: "string", value: "<count>" },
    lane: { type: "string", value: "<name=what>", multiple: true },
    ahead: { type: "string", value: "<count>" },
    order: { type: "string", value: "<order>", choices: ["turns"] },
    pin: { type: "string", value: "<name=what>", multiple: true },
    unpin: { type: "string", value: "<name>", multiple: true },
    clear: { type: "boolean" },
    ...LIMIT,
    ...CHANGING,
  },
  optionHelp: {
    rate: "sets the rate of the whole queue: 50/s, 500/m or 10/250ms; none ends it",
    burst:
      "lets so many messages go at once after a while without any, with --rate; defaults to what falls to 100 ms, at least 1",
    concurrency:
      "lets so many messages of a reliable queue be ready or in flight, in all processes; none ends it",
    "lane-rate": "gives the queue lanes, and sets the rate of each; none: without one",
    "lane-concurrency":
      "gives the queue lanes, and lets so many messages of each be ready or in flight; none ends it",
    lane: "sets what one lane may, by its name, in place of what each may: gold=20/s, gold=weight=3 or gold=20/s,concurrency=2,weight=3; none ends that; repeat it for several",
    ahead:
      "lets so many messages be ready before more wait for their turn, in a queue with lanes; defaults to 100",
    order: "gives the queue lanes without limits, for priorities: turns",
    pin: "fixes what one lane may, whatever code sets: acme=paused, or limits such as acme=1/s,concurrency=2; repeat it for several",
    unpin: "lets the flow say again what one lane may; repeat it for several",
    clear: "ends the flow, and all pins: what waits becomes ready",
    limit: "lists no more lanes than this, 1 to 1000; defaults to 20",
    ...CHANGING_HELP,
  },
  async run(session, [name = ""], values) {
    const { clear = false, limit: most = "20" } = values;
    const change = changeOf(values);
    const pins = pinsOf(values);
    const [first, other] = [change?.option, pins[0]?.option, clear ? "clear" : undefined].filter(
      (option) => option !== undefined,
    );
    if (other !== undefined) throw new UsageError(`--${first} and --${other} exclude each other`);
    const limit = parseCount("--limit", most, 1, MOST_LANES);
    const { messages } = await session.open(name);
    const { output, isJson, signal } = session;
    if (change !== undefined || clear) {
      const wanted = change?.of((await messages.flow.get({ signal })) ?? {});
      const isEmpty = wanted !== undefined && wanted.rate === undefined && !hasLanes(wanted);
      if (isEmpty) throw new UsageError("nothing would be left of the flow: give --clear");
      const doing =
        wanted === undefined
          ? `end the flow of queue ${quoted(name)}`
          : `set the flow of queue ${quoted(name)} to ${flowInWords(wanted)}`;
      if (!(await confirm(session, doing, values))) return EXIT.done;
      if (wanted === undefined) await messages.flow.clear({ signal });
      else await messages.flow.set(wanted, { signal });
    }
    if (pins.length > 0) {
      const doing = pins.map(({ lane, pin }) =>
        pin === undefined
          ? `unpin lane ${quoted(lane)}`
          : `pin lane ${quoted(lane)}: ${pinInWords(pin)}`,
      );
      const all = `${doing.join(", ")} in the flow of queue ${quoted(name)}`;
      if (!(await confirm(session, all, values))) return EXIT.done;
      for (const { lane, pin } of pins) {
        // One after the other: each sets the flow again.
        // oxlint-disable-next-line no-await-in-loop
        if (pin === undefined) await messages.flow.unpin(lane, { signal });
        // oxlint-disable-next-line no-await-in-loop
        else await messages.flow.pin(lane, pin, { signal });
      }
    }
    const now = await messages.flow.get({ signal });
    const { waiting, lanes } = await messages.flow.state({ limit: MOST_LANES, signal });
    if (isJson) {
      await output.json({ queue: name, flow: now ?? null, waiting, lanes: lanes.slice(0, limit) });
      return EXIT.done;
    }
    const waits = `${formatCount(waiting, "message")} waiting`;
    if (now === undefined && waiting === 0) {
      await output.print(`Queue ${quoted(name)} has no flow: no rate, and no lanes.`);
    } else {
      const words = now === undefined ? "none" : flowInWords(now);
      await output.print(`The flow of queue ${quoted(name)}: ${words}; ${waits}.`);
    }
    if (lanes.length > 0) {
      const { serverTime } = await messages.stats({ signal });
      await printLanes(output, lanes.slice(0, limit), now?.lanes ?? {}, serverTime);
    }
    if (lanes.length > limit) {
      session.hint("There are more lanes.", "To list them", "flow", name, [
        "--limit",
        String(MOST_LANES),
      ]);
    }
    return EXIT.done;
  },
});

/** Prints lanes, how many of their messages wait and are in hand, and when they go on; `now` is the server's time (epoch ms). */
async function printLanes(
  output: Output,
  waiting: readonly LaneState[],
  named: Readonly<Record<string, Lane>>,
  now: number,
): Promise<void> {
  const hasOwn = waiting.some(({ lane }) => Object.hasOwn(named, lane));
  const hasPinned = waiting.some(({ pinned }) => pinned !== undefined);
  const hasRunning = waiting.some(({ running }) => running !== undefined);
  const rows = waiting.map(({ lane, waiting: count, running, restsUntil, pinned }) => [
    lane === "" ? "(no lane)" : lane,
    formatCount(count),
    ...(hasRunning ? [running === undefined ? "-" : formatCount(running)] : []),
    restsUntil === undefined ? "-" : formatDistance(restsUntil, now),
    ...(hasOwn ? [Object.hasOwn(named, lane) ? laneInWords(named[lane] ?? {}) : "-"] : []),
    ...(hasPinned ? [pinned === undefined ? "-" : pinInWords(pinned)] : []),
  ]);
  const columns: readonly Column[] = [
    { title: "LANE", canShrink: true },
    { title: "WAITING", align: "right" },
    ...(hasRunning ? [IN_HAND] : []),
    { title: "GOES ON" },
    ...(hasOwn ? [OWN] : []),
    ...(hasPinned ? [PINNED] : []),
  ];
  await output.table(columns, rows);
}

const IN_HAND: Column = { title: "IN HAND", align: "right" };

const OWN: Column = { title: "OF ITS OWN", canShrink: true };

const PINNED: Column = { title: "PINNED", canShrink: true };

/** The most lanes of a list. */
const MOST_LANES = 1000;

/** A change of a flow that options name. */
interface FlowChange {
  /** The first of these options. */
  readonly option: string;
  /** The flow that becomes of this one. */
  readonly of: (flow: FlowOptions) => FlowOptions;
}

interface FlowValues {
  readonly rate?: string;
  readonly burst?: string;
  readonly concurrency?: string;
  readonly "lane-rate"?: string;
  readonly "lane-concurrency"?: string;
  readonly lane?: readonly string[];
  readonly ahead?: string;
  readonly order?: string;
  readonly pin?: readonly string[];
  readonly unpin?: readonly string[];
}

/**
 * The change that options name; undefined if they name none.
 *
 * @throws {UsageError} that names the option, the rule and the value.
 */
function changeOf(values: FlowValues): FlowChange | undefined {
  const { rate, burst, concurrency, ahead, order } = values;
  const { lane = [], "lane-rate": laneRate, "lane-concurrency": laneConcurrency } = values;
  const option = OPTIONS.find((one) => values[one] !== undefined);
  if (option === undefined) return undefined;
  const isEnded = rate === "none";
  if (isEnded && burst !== undefined) throw new UsageError("--burst needs --rate");
  const own = lane.map((text) => parseLane(text));
  const changes = {
    ...((rate !== undefined || burst !== undefined) && {
      rate: isEnded ? undefined : flowOf(rate, burst)?.rate,
    }),
    ...(concurrency !== undefined && {
      concurrency: unlessNone(concurrency, (text) => parseCount("--concurrency", text, 1, MOST)),
    }),
    ...(ahead !== undefined && { ahead: parseCount("--ahead", ahead, 1, MOST) }),
    ...(order !== undefined && { order: parseChoice("--order", order, ["turns"]) }),
  };
  const ofEach = {
    ...(laneRate !== undefined && {
      rate: unlessNone(laneRate, (text) => parseRate("--lane-rate", text)),
    }),
    ...(laneConcurrency !== undefined && {
      concurrency: unlessNone(laneConcurrency, (text) =>
        parseCount("--lane-concurrency", text, 1, MOST_SLOTS),
      ),
    }),
  };
  const of = ({ lane: each, lanes, ...others }: FlowOptions): FlowOptions => {
    const all = { ...lanes };
    for (const [name, what] of own) {
      if (what === undefined) delete all[name];
      else all[name] = what;
    }
    const hasEach = each !== undefined || Object.keys(ofEach).length > 0;
    const hasNamed = lanes !== undefined || own.some(([, what]) => what !== undefined);
    return withoutUnset<FlowOptions>({
      ...others,
      ...(hasEach && { lane: withoutUnset<Lane>({ ...each, ...ofEach }) }),
      ...(hasNamed && { lanes: all }),
      ...changes,
    });
  };
  return { option, of };
}

/**
 * What options pin, and unpin.
 *
 * @throws {UsageError} that names the option, the rule and the value.
 */
function pinsOf({ pin = [], unpin = [] }: FlowValues): {
  readonly option: "pin" | "unpin";
  readonly lane: string;
  readonly pin: PinnedLane | undefined;
}[] {
  return [
    ...pin.map((text) => {
      const [, paused] = /^(.+)=paused$/s.exec(text) ?? [];
      if (paused !== undefined)
        return { option: "pin", lane: paused, pin: { paused: true } } as const;
      const [lane, what] = parseLane(text, "--pin");
      if (what === undefined) throw new UsageError(`--pin has no none: give --unpin ${lane}`);
      return { option: "pin", lane, pin: what } as const;
    }),
    ...unpin.map((lane) => ({ option: "unpin", lane, pin: undefined }) as const),
  ];
}

/** The options that change a flow. */
const OPTIONS = [
  "rate",
  "burst",
  "concurrency",
  "lane-rate",
  "lane-concurrency",
  "lane",
  "ahead",
  "order",
] as const;

function unlessNone<Value>(text: string, parse: (text: string) => Value): Value | undefined {
  return text === "none" ? undefined : parse(text);
}

function withoutUnset<Options extends object>(options: {
  readonly [Name in keyof Options]: Options[Name] | undefined;
}): Options {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as Options;
}

/** What a lane may, by an option such as `gold=20/s,weight=3`; undefined after the name for `gold=none`. */
function parseLane(
  text: string,
  option = "--lane",
): readonly [name: string, what: Lane | undefined] {
  const [, name, what = ""] = LANE.exec(text) ?? [];
  if (name === undefined) {
    throw new UsageError(
      `${option} must be such as gold=20/s, gold=weight=3 or gold=${option === "--pin" ? "paused" : "none"}, got ${JSON.stringify(text)}`,
    );
  }
  if (what === "none") return [name, undefined];
  const limits = what.split(",").map((part): Lane => {
    const [word = "", number = ""] = part.split("=");
    if (word === "weight") return { weight: Number(number) };
    if (word === "concurrency") {
      return { concurrency: parseCount(option, number, 1, MOST_SLOTS) };
    }
    return { rate: parseRate(option, part) };
  });
  return [name, Object.assign({}, ...limits) as Lane];
}

const LIMIT_OF_LANE = String.raw`(?:\d+\/\w+|weight=\d+(?:\.\d+)?|concurrency=\d+)`;
const LANE = new RegExp(`^(.+?)=(none|${LIMIT_OF_LANE}(?:,${LIMIT_OF_LANE})*)$`, "s");

/** The most messages of a lane that may be in hand. */
const MOST_SLOTS = 1000;

/**
 * The flow that options name; undefined if they name none.
 *
 * @throws {UsageError} that names the option, the rule and the value.
 */
export function flowOf(
  rate: string | undefined,
  burst: string | undefined,
): FlowOptions | undefined {
  if (rate === undefined) {
    if (burst !== undefined) throw new UsageError("--burst needs --rate");
    return undefined;
  }
  const { limit, per } = parseRate("--rate", rate);
  return {
    rate: {
      limit,
      per,
      ...(burst !== undefined && { burst: parseCount("--burst", burst, 1, MOST) }),
    },
  };
}

/** @throws {UsageError} that names the option, the rule and the value. */
function parseRate(option: string, text: string): Rate {
  const [, limit = "", per = ""] = /^(\d+)\/(.+)$/.exec(text) ?? [];
  if (limit === "") {
    throw new UsageError(
      `${option} must be such as 50/s, 500/m or 10/250ms, got ${JSON.stringify(text)}`,
    );
  }
  const length = parseDuration(option, /^\d/.test(per) ? per : `1${per}`);
  if (length < 1 || length > DAY || !Number.isInteger(length)) {
    throw new UsageError(`${option} must be within 1ms to 1d, got ${JSON.stringify(text)}`);
  }
  return { limit: parseCount(option, limit, 1, MOST), per: length };
}

/** Prints what becomes ready in each span; leaves out those in which nothing happens. */
export async function printPreview(
  output: Output,
  { spans, endsAt, seenUntil }: FlowPreview,
): Promise<void> {
  const rows = spans
    .filter(({ due, ready, waiting }) => due + ready + waiting > 0)
    .map(({ at, due, ready, waiting }) => [
      formatInstant(at),
      formatCount(due),
      formatCount(ready),
      formatCount(waiting),
    ]);
  if (rows.length > 0) await output.table(COLUMNS, rows);
  const last = spans.at(-1);
  output.say(
    endsAt === undefined
      ? `At the end of these spans ${formatCount(last?.waiting ?? 0, "message")} would wait.`
      : `All would be ready by ${formatInstant(Math.ceil(endsAt))}.`,
  );
  if (seenUntil !== undefined) {
    output.say(`Only what is due by ${formatInstant(seenUntil)} was looked at: there is too much.`);
  }
}

const COLUMNS: readonly Column[] = [
  { title: "FROM" },
  { title: "DUE", align: "right" },
  { title: "READY", align: "right" },
  { title: "WAITING", align: "right" },
];

const DAY = 86_400_000;

/** The largest count of a rate. */
const MOST = 1_000_000;
