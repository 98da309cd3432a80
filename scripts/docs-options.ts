import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { format, resolveConfig } from "prettier";

// Writes docs/guide/options.md from the docstrings of the options' types. `npm run docs` calls it.

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** The page that this script writes. */
const PATH = `${ROOT}docs/guide/options.md`;

/** The types of the options in the order of the page, each with its heading and what is said above its table. */
export const SECTIONS = [
  {
    heading: "A client",
    type: "DelaylineOptions",
    about:
      "`new Delayline(options)`. The options of [a queue](#a-queue) can be set here, too, except `partitions`, and then apply to each queue that does not set its own.",
  },
  {
    heading: "A queue",
    type: "QueueOptions",
    about:
      "The second argument of `getDelayedQueue`, `getBlockingQueue` and `getReliableQueue`. More: [payloads](payloads.md), [Java](../redisson/guide.md#interop-redisson), [partitions](partitions.md).",
  },
  {
    heading: "A reliable queue",
    type: "GroupOptions",
    about:
      "`getReliableQueue`, and `reliable` of [`defineQueue`](#a-definition), besides those of [any queue](#a-queue). More: [groups](reliable.md#groups), [retries](reliable.md#retries), [one consumer per key](partitions.md#one-consumer-per-key).",
  },
  {
    heading: "A definition",
    type: "DefineQueueOptions",
    about:
      "The second argument of [`defineQueue`](getting-started.md#one-definition-of-a-queue), besides those of [any queue](#a-queue) except `transfer`.",
  },
  {
    heading: "Opening a definition",
    type: "OpenQueueOptions",
    about: "The second argument of `line.open`: what concerns this process alone.",
  },
  { heading: "A growing pause", type: "Backoff", about: "One form of `retry`." },
  {
    heading: "One offer",
    type: "OfferOptions",
    about:
      "The last argument of `offer` and `offerAt`, and part of each message of `offerMany`. More: [business keys](delayed-messages.md#business-keys), [partition keys](partitions.md#partition-keys).",
  },
  {
    heading: "Every call",
    type: "CallOptions",
    about:
      "The last argument of every method that talks to Redis, with [few exceptions](errors.md#ending-a-call-yourself).",
  },
  {
    heading: "Finding one",
    type: "FindOptions",
    about:
      "The last argument of `cancel`, `cancelMany`, `reschedule`, `rescheduleAt`, `promote`, `get`, `has` and `stage`.",
  },
  {
    heading: "Revoking",
    type: "RevokeOptions",
    about:
      "`revoke`, besides those of [finding one](#finding-one): [stopping what runs](stopping.md).",
  },
  {
    heading: "Cancelling with an offer",
    type: "CancelOptions",
    about:
      "`cancel`, besides those of [finding one](#finding-one): [a next step](next-step.md#cancel-and-offer).",
  },
  {
    heading: "Acknowledging with an offer",
    type: "AckOptions",
    about: "`ack` of a delivery: [a next step](next-step.md).",
  },
  { heading: "Cancelling many", type: "CancelWhereOptions", about: "`cancelWhere`." },
  { heading: "Forecasts", type: "ForecastOptions", about: "`forecast`." },
  {
    heading: "The flow of a queue",
    type: "FlowOptions",
    about: "`flow.set`, and `flow` of `flow.preview`. More: [flow](flow.md).",
  },
  { heading: "A rate", type: "Rate", about: "`rate` of a flow." },
  { heading: "A preview of a flow", type: "PreviewOptions", about: "`flow.preview`." },
  { heading: "Pausing", type: "PauseOptions", about: "`pause`." },
  { heading: "Hours and days", type: "NextWithinOptions", about: "`nextWithin`." },
  {
    heading: "A schedule",
    type: "ScheduleOptions",
    about: "`queue.schedules.upsert` and `declare`.",
  },
  { heading: "A set of schedules", type: "DeclareOptions", about: "`schedules.declare`." },
  { heading: "Backfilling a schedule", type: "BackfillOptions", about: "`schedules.backfill`." },
  { heading: "Taking", type: "TakeManyOptions", about: "`takeMany`, also of a reliable queue." },
  {
    heading: "Subscribing",
    type: "SubscribeOptions",
    about: "`subscribe`, also of a reliable queue.",
  },
  {
    heading: "Subscribing to a reliable queue",
    type: "ReliableSubscribeOptions",
    about: "`subscribe` and `route`, besides those of [any queue](#subscribing).",
  },
  {
    heading: "Batches",
    type: "BatchOptions",
    about: "`subscribeBatch`, besides those of [any queue](#subscribing).",
  },
  {
    heading: "A time limit",
    type: "TimeLimitOptions",
    about:
      "`subscribe`, `subscribeBatch` and `route` of a reliable queue. More: [time limits](stopping.md#time-limits).",
  },
  {
    heading: "Routes",
    type: "RouteOptions",
    about: "`route`, besides those of [`subscribe`](#subscribing-to-a-reliable-queue).",
  },
  { heading: "Settling a delivery", type: "NackOptions", about: "`delivery.nack`." },
  { heading: "Redriving", type: "RedriveOptions", about: "`deadLetters.redrive`." },
  {
    heading: "Changing the number of partitions",
    type: "SetPartitionsOptions",
    about: "`line.setPartitions`: [how](partitions.md#changing-the-number).",
  },
  {
    heading: "Closing",
    type: "CloseOptions",
    about: "`close` of a client and of a subscription.",
  },
  {
    heading: "A Redis for tests",
    type: "StartRedisOptions",
    about: "`startRedis` of [`delayline/testing`](testing.md).",
  },
  {
    heading: "A clock for tests",
    type: "TestClockOptions",
    about: "`testClock` of [`delayline/testing`](testing.md#a-clock-that-the-test-turns).",
  },
] as const;

/** One option, as its docstring describes it. */
interface Option {
  readonly name: string;
  readonly default: string;
  readonly about: string;
}

/** Returns the page as it has to be. */
export async function optionsPage(): Promise<string> {
  const sections = SECTIONS.map(({ heading, type, about }) => {
    const rows = optionsOf(type).map(
      (row) => `| \`${row.name}\` | ${row.default} | ${row.about} |`,
    );
    return [
      `## ${heading}`,
      about,
      ["| option | default | |", "| - | - | - |", ...rows].join("\n"),
    ];
  });
  const page = [
    "<!-- Written by scripts/docs-options.ts from the docstrings in src/. -->",
    "# Options",
    "An unknown option or a bad value is refused at once, with its name, the rule and the value received. Times are in milliseconds. Your editor shows more about each: what it costs, and what to consider.",
    ...sections.flat(),
  ];
  return await format(page.join("\n\n"), { ...(await resolveConfig(PATH)), filepath: PATH });
}

/** The options that an interface declares itself, wherever it is in `src/`. */
function optionsOf(type: string): Option[] {
  const body = bodyOf(type);
  const members = body.matchAll(/^ {2}\/\*\*(.*?)\*\/\n {2}readonly (\w+)(\??):/gms);
  return Array.from(members, ([, docstring = "", name = "", optional]) => {
    const text = docstring.replaceAll(/^ *\*(?: |$)/gm, "").trim();
    const [first = ""] = text.split(/\n\s*\n/);
    const ofDefault = /(?:^|\s)Defaults\s+to\s+(.*?)\.(?=\s|$)/s;
    // What stands behind a colon or a semicolon explains the default.
    const value = ofDefault.exec(text)?.[1]?.match(/^(?:`[^`]*`|"[^"]*"|[^:;])*/)?.[0];
    return {
      name,
      default: cell(optional === "" ? "required" : (value ?? "none")),
      about: cell(first.replace(ofDefault, "")),
    };
  });
}

function bodyOf(type: string): string {
  const declaration = new RegExp(`^export interface ${type}\\b.*?\\{\\n(.*?)^\\}`, "ms");
  // A type that forbids some combinations of an interface's options.
  const alias = new RegExp(`^export type ${type}\\b.*? = (\\w+)<`, "m");
  for (const file of readdirSync(`${ROOT}src`, { recursive: true, encoding: "utf8" })) {
    const body = file.endsWith(".ts")
      ? declaration.exec(readFileSync(`${ROOT}src/${file}`, "utf8"))?.[1]
      : undefined;
    if (body !== undefined) return body;
    const narrowed = file.endsWith(".ts") && alias.exec(readFileSync(`${ROOT}src/${file}`, "utf8"));
    if (narrowed) return bodyOf(narrowed[1] as string);
  }
  throw new Error(`there is no interface ${type} in src/`);
}

/** A text of a docstring as a cell of a table. */
function cell(text: string): string {
  return text
    .replaceAll(/\{@link (.*?)\}/g, "`$1`")
    .replaceAll(/\s+/g, " ")
    .replaceAll("|", "\\|")
    .trim();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(PATH, await optionsPage());
