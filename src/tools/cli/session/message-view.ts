import type { OnlyIf, QueueStats } from "../../../index.ts";
import { trailers } from "../../../inside.ts";
import { BOUNDS, isOverdue } from "../../view/health.ts";
import type { HandledSighting } from "../../view/handled.ts";
import {
  countBeforeRedrive,
  isUnreadable,
  MESSAGE_STATES,
  stageOf,
  type MessageState,
  type Sighting,
} from "../../view/sighting.ts";
import { escapeControl, readablePayload, type CommandWord } from "../../view/text.ts";
import { parseCount } from "./arguments.ts";
import type { OptionsConfig } from "./command.ts";
import { formatPairs, quoted, type Column, type Output } from "./output.ts";
import type { Session } from "./session.ts";
import { formatInstant } from "../../view/instants.ts";
import { formatCount, formatDistance, formatDuration } from "../../view/words.js";

/** The states as options take them. */
export const STATE_WORDS: readonly string[] = MESSAGE_STATES.map(wordOf);

/** A state as options take it: `in-flight`. */
export function wordOf(state: MessageState): string {
  return state.replace(" ", "-");
}

/** The state that one of {@link STATE_WORDS} stands for. */
export function stateOf(word: string): MessageState {
  return word.replace("-", " ") as MessageState;
}

/** A payload for JSON output: readable, and its bytes in base64. */
export function payloadJson(payload: Uint8Array): object {
  const base64 = Buffer.from(payload).toString("base64");
  return { payload: { ...readablePayload(payload), base64 } };
}

/** A payload as a line to print under its message. */
export function payloadLine(payload: Uint8Array): string {
  const { format, text } = readablePayload(payload);
  return `    ${format}: ${text}`;
}

/** The failed attempts of a message as lines to print under it; `now` is the server's time (epoch ms). */
export function failureLines(seen: Sighting, now: number): string[] {
  const before = countBeforeRedrive(seen);
  return seen.failures.map(({ attempt, at, reason }, i) => {
    const head = `      attempt ${attempt}, ${formatDistance(at, now)}`;
    return failureText(head, i < before, reason === "" ? "" : quoted(reason));
  });
}

function failureText(what: string, isBeforeRedrive: boolean, why: string): string {
  return `${what}${isBeforeRedrive ? ", before the redrive" : ""}${why === "" ? "" : `: ${why}`}`;
}

/** A message for JSON output, with its payload on request. */
export function sightingJson(seen: Sighting, withPayload: boolean): object {
  const { payload, trailer: _, isWaiting: __, ...others } = seen;
  return { ...others, ...conditionsOf(seen), ...(withPayload && payloadJson(payload)) };
}

/** What is asked when a delayed message is due. */
function conditionsOf({
  state,
  trailer,
}: Sighting): Pick<trailers.Trailer, "onlyIf" | "deliverWithin"> {
  if (state !== "delayed") return {};
  const { onlyIf, deliverWithin } = trailers.unpackTrailer(trailer);
  return {
    ...(onlyIf !== undefined && { onlyIf }),
    ...(deliverWithin !== undefined && { deliverWithin }),
  };
}

function guardText({ key, field, is, isNot, exists }: OnlyIf): string {
  const what = field === undefined ? key : `${key}, field ${field}`;
  if (is !== undefined) return `${what} is ${JSON.stringify(is)}`;
  if (isNot !== undefined) return `${what} is not ${JSON.stringify(isNot)}`;
  return `${what} ${exists === true ? "exists" : "does not exist"}`;
}

/** Everything known about a message, one pair per line; `now` is the server's time (epoch ms). */
export function describe(seen: Sighting, now: number, withPayload: boolean): string[] {
  const {
    state,
    id,
    key,
    headers,
    deadline,
    offeredAt,
    schedule,
    tick = NaN,
    attempts,
    group,
    partition,
    lane,
    priority,
    failures,
    consumer,
    takenAt,
    host,
    pid,
    readyAt,
    heldBackUntil,
    reason,
    diedAt,
    size,
    payload,
  } = seen;
  const before = countBeforeRedrive(seen);
  const at = (instant: number) => `${formatInstant(instant)} (${formatDistance(instant, now)})`;
  const pairs: [name: string, value: string][] = [["id", id]];
  if (key !== undefined) pairs.push(["key", key]);
  const stage = stageOf(seen);
  if (stage !== state) pairs.push(["stage", stage]);
  pairs.push([DUE[state] ?? "was due", at(deadline)]);
  if (offeredAt !== undefined) pairs.push(["offered", at(offeredAt)]);
  if (lane !== undefined) pairs.push(["lane", lane]);
  if (priority !== undefined) pairs.push(["priority", String(priority)]);
  if (schedule !== undefined) pairs.push(["placed by", `schedule ${schedule}, tick ${at(tick)}`]);
  if (readyAt !== undefined) pairs.push(["ready since", at(readyAt)]);
  if (heldBackUntil !== undefined) pairs.push(["held back until", at(heldBackUntil)]);
  if (takenAt !== undefined) pairs.push(["in flight since", at(takenAt)]);
  if (host !== undefined) pairs.push(["host", host], ["pid", String(pid)]);
  if (consumer !== undefined) pairs.push(["consumer", consumer]);
  if (diedAt !== undefined) pairs.push(["died", at(diedAt)]);
  if (reason !== undefined) pairs.push(["reason", reason]);
  if (group !== undefined) pairs.push(["group", group]);
  if (attempts > 0 || state !== "delayed") pairs.push(["attempts", formatCount(attempts)]);
  for (const [i, { attempt, at: failedAt, reason: why }] of failures.entries())
    pairs.push([`attempt ${attempt}`, failureText(`failed ${at(failedAt)}`, i < before, why)]);
  if (partition !== undefined) pairs.push(["partition", String(partition)]);
  const { onlyIf, deliverWithin } = conditionsOf(seen);
  if (onlyIf !== undefined) pairs.push(["only if", guardText(onlyIf)]);
  if (deliverWithin !== undefined) pairs.push(["at the latest", at(deadline + deliverWithin)]);
  for (const [name, value] of Object.entries(headers ?? {}))
    pairs.push(["header", `${name}=${value}`]);
  const { format, text } = readablePayload(payload);
  const bytes = `${formatCount(size)} bytes`;
  pairs.push([
    "payload",
    withPayload ? `${bytes} of ${format}: ${text}` : `${bytes} (--payload shows it)`,
  ]);
  return formatPairs(pairs);
}

/** What is remembered of a message that was handled, one pair per line; `now` is the server's time (epoch ms). */
export function describeHandled(handled: HandledSighting, now: number): string[] {
  const { id, key, handledAt, attempt, duration, host, pid, group, partition } = handled;
  const pairs: [name: string, value: string][] = [["id", id]];
  if (key !== undefined) pairs.push(["key", key]);
  pairs.push(["handled", `${formatInstant(handledAt)} (${formatDistance(handledAt, now)})`]);
  pairs.push(["attempt", formatCount(attempt)]);
  if (duration !== undefined) pairs.push(["took", formatDuration(duration)]);
  if (host !== undefined) pairs.push(["host", host], ["pid", String(pid)]);
  pairs.push(["group", group]);
  if (partition !== undefined) pairs.push(["partition", String(partition)]);
  return formatPairs(pairs);
}

const DUE: Readonly<Record<string, string>> = { delayed: "due", retrying: "next attempt" };

/** The option of the commands that list messages, and its help. */
export const LIMIT = {
  limit: { type: "string", value: "<count>" },
} as const satisfies OptionsConfig;
export const LIMIT_HELP = { limit: "lists no more than this many; defaults to 20" } as const;

/** @throws {UsageError} if it is not a positive number. */
export function parseLimit(limit = "20"): number {
  return parseCount("--limit", limit, 1, Number.MAX_SAFE_INTEGER);
}

/**
 * Prints messages as a table, or with `isJson` as one object per line; returns how many. `now` is the server's time
 * (epoch ms). Those in flight have columns of their own,
 * and messages in any state have one for it. A long table is printed in pieces, so that its first rows appear
 * while the rest is read.
 */
export async function printMessages(
  { output, isJson }: { readonly output: Output; readonly isJson: boolean },
  messages: AsyncIterable<Sighting>,
  now: number,
  withPayload: boolean,
  state: MessageState | "any" = "delayed",
): Promise<number> {
  const [columns, cellsOf] =
    state === "in flight"
      ? ([IN_FLIGHT_COLUMNS, inFlightRowOf] as const)
      : state === "any"
        ? ([[{ title: "STATE" }, ...COLUMNS], stateAndRowOf] as const)
        : ([COLUMNS, rowOf] as const);
  let count = 0;
  let page: Sighting[] = [];
  const flush = async () => {
    const rare = RARE.filter(({ isIn }) => page.some(isIn));
    const rows = page.map((seen) => [...cellsOf(seen, now), ...rare.map(({ cell }) => cell(seen))]);
    if (rows.length > 0) await output.table([...columns, ...rare], rows);
    page = [];
  };
  for await (const seen of messages) {
    count++;
    if (isJson) await output.json(sightingJson(seen, withPayload));
    else if (withPayload) {
      const cells = [
        ...cellsOf(seen, now),
        ...RARE.filter(({ isIn }) => isIn(seen)).map(({ cell }) => cell(seen)),
      ];
      const line = cells.map(escapeControl).join("  ");
      await output.print(line, payloadLine(seen.payload));
    } else if (page.push(seen) === PAGE) await flush();
  }
  await flush();
  return count;
}

const COLUMNS: readonly Column[] = [
  { title: "DUE" },
  { title: "ID" },
  { title: "KEY", canShrink: true },
];

/** Columns that are left out unless a message has something there: most queues have neither lanes nor schedules. */
const RARE: readonly (Column & {
  readonly isIn: (seen: Sighting) => boolean;
  readonly cell: (seen: Sighting) => string;
})[] = [
  {
    title: "LANE",
    canShrink: true,
    isIn: ({ lane }) => lane !== undefined,
    cell: ({ lane = "-" }) => lane,
  },
  {
    title: "PRIORITY",
    align: "right",
    isIn: ({ priority }) => priority !== undefined,
    cell: ({ priority = 0 }) => String(priority),
  },
  {
    title: "PLACED BY",
    canShrink: true,
    isIn: ({ schedule }) => schedule !== undefined,
    cell: ({ schedule, tick = NaN }) =>
      schedule === undefined ? "-" : `schedule ${schedule}, tick ${formatInstant(tick)}`,
  },
];

/** Yields no more than the first `count` messages. */
export async function* firstOf(
  messages: AsyncIterable<Sighting>,
  count: number,
): AsyncGenerator<Sighting, void, void> {
  let left = count;
  for await (const message of messages) {
    yield message;
    if (--left === 0) return;
  }
}

/** Says how many messages a list that ended at its limit leaves out; `words` are the command without its limit. */
export function sayRest(
  session: Session,
  printed: number,
  total: number,
  ...words: readonly CommandWord[]
): void {
  if (printed >= total) return;
  const said = `Listed ${formatCount(printed)} of ${formatCount(total)}.`;
  session.hint(said, "To list all", ...words, ["--limit", String(total)]);
}

function stateAndRowOf(seen: Sighting, now: number): string[] {
  return [seen.state, ...rowOf(seen, now)];
}

function rowOf({ deadline, id, key }: Sighting, now: number): string[] {
  return [formatDistance(deadline, now), id, key ?? "-"];
}

const IN_FLIGHT_COLUMNS: readonly Column[] = [
  { title: "SINCE" },
  { title: "ID" },
  { title: "KEY", canShrink: true },
  { title: "ATTEMPT", align: "right" },
  { title: "HOST", canShrink: true },
  { title: "PID", align: "right" },
  { title: "CONSUMER", canShrink: true },
];

function inFlightRowOf(seen: Sighting, now: number): string[] {
  const {
    id,
    key = "-",
    takenAt,
    heldBackUntil,
    attempts,
    host = "-",
    pid = "-",
    consumer = "-",
  } = seen;
  const since = takenAt === undefined ? "waits" : formatDistance(takenAt, now);
  const due = heldBackUntil === undefined ? since : formatDistance(heldBackUntil, now);
  return [due, id, key, formatCount(attempts), host, String(pid), consumer];
}

/** Rows per piece. */
const PAGE = 100;

/** The numbers of a queue on which the next step depends. */
type StepNumbers = Pick<QueueStats, "serverTime" | "waiting">;

/**
 * The command to run next about a message that was found, and why. Returns undefined if there is nothing to do but
 * wait, or if the command cannot be pasted.
 */
export function nextStep(
  seen: Sighting,
  numbers: StepNumbers,
  commandLine: (...words: readonly string[]) => string | undefined,
): string | undefined {
  const [why, ...words] = stepOf(seen, numbers);
  if (why === undefined) return undefined;
  const command = commandLine(...words);
  return command === undefined ? undefined : `${why}: ${command}`;
}

/** Why, and then the words of the command; empty if there is nothing to do but wait. */
function stepOf(seen: Sighting, { serverTime: now, waiting }: StepNumbers): readonly string[] {
  const { state, isWaiting, queue, id, deadline, readyAt = Infinity } = seen;
  if (state === "dead") {
    return isUnreadable(seen)
      ? ["It is unreadable and cannot be redriven. To remove it", "dead", "remove", queue, id]
      : ["To deliver it again", "dead", "redrive", queue, id];
  }
  if (state === "delayed" || state === "retrying") {
    if (isWaiting || (deadline <= now && waiting > 0))
      return ["It is due, and messages wait for their turn. To see for which", "flow", queue];
    if (isOverdue(deadline, now)) return ["It is overdue. To find out why", "doctor", queue];
    return state === "retrying"
      ? ["To retry it now", "deliver-now", queue, id]
      : ["To cancel it (see also deliver-now and reschedule)", "cancel", queue, id];
  }
  const isLong = now - readyAt >= BOUNDS.backlog;
  return isLong && state === "ready"
    ? ["To find out what holds it up (see also revoke)", "doctor", queue]
    : [`To stop it${isLong ? " (see also doctor)" : ""}`, "revoke", queue, id];
}
