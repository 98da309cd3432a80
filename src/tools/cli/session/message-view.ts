import { BOUNDS, isOverdue } from "../../../observe/health.ts";
import { countBeforeRedrive, isUnreadable, type Sighting } from "../../inspect/sighting.ts";
import { escapeControl, readablePayload } from "../../inspect/text.ts";
import { formatDistance, formatDuration, formatInstant } from "./format-time.ts";
import { formatCount, formatFacts, quoted, type Column, type Output } from "./output.ts";

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
  const { payload, trailer: _, ...others } = seen;
  return { ...others, ...(withPayload && payloadJson(payload)) };
}

/** Everything known about a message, one fact per line; `now` is the server's time (epoch ms). */
export function describe(seen: Sighting, now: number, withPayload: boolean): string[] {
  const {
    state,
    id,
    key,
    headers,
    deadline,
    offeredAt,
    attempts,
    group,
    partition,
    failures,
    consumer,
    heldFor,
    readyAt,
    heldBackUntil,
    reason,
    diedAt,
    size,
    payload,
  } = seen;
  const before = countBeforeRedrive(seen);
  const at = (instant: number) => `${formatInstant(instant)} (${formatDistance(instant, now)})`;
  const facts: [name: string, value: string][] = [["id", id]];
  if (key !== undefined) facts.push(["key", key]);
  facts.push([DUE[state] ?? "was due", at(deadline)]);
  if (offeredAt !== undefined) facts.push(["offered", at(offeredAt)]);
  if (readyAt !== undefined) facts.push(["ready since", at(readyAt)]);
  if (heldBackUntil !== undefined) facts.push(["held back until", at(heldBackUntil)]);
  if (consumer !== undefined) facts.push(["consumer", consumer]);
  if (heldFor !== undefined) facts.push(["held for", formatDuration(heldFor)]);
  if (diedAt !== undefined) facts.push(["died", at(diedAt)]);
  if (reason !== undefined) facts.push(["reason", reason]);
  if (group !== undefined) facts.push(["group", group]);
  if (attempts > 0 || state !== "delayed") facts.push(["attempts", formatCount(attempts)]);
  for (const [i, { attempt, at: failedAt, reason: why }] of failures.entries())
    facts.push([`attempt ${attempt}`, failureText(`failed ${at(failedAt)}`, i < before, why)]);
  if (partition !== undefined) facts.push(["partition", String(partition)]);
  for (const [name, value] of Object.entries(headers ?? {}))
    facts.push(["header", `${name}=${value}`]);
  const { format, text } = readablePayload(payload);
  const bytes = `${formatCount(size)} bytes`;
  facts.push([
    "payload",
    withPayload ? `${bytes} of ${format}: ${text}` : `${bytes} (--payload shows it)`,
  ]);
  return formatFacts(facts);
}

const DUE: Readonly<Record<string, string>> = { delayed: "due", retrying: "next attempt" };

/**
 * Prints messages as a table, or with `isJson` as one object per line; returns how many. `now` is the server's time
 * (epoch ms). A long table is printed in pieces, so that its first rows appear while the rest is read.
 */
export async function printMessages(
  { output, isJson }: { readonly output: Output; readonly isJson: boolean },
  messages: AsyncIterable<Sighting>,
  now: number,
  withPayload: boolean,
): Promise<number> {
  let count = 0;
  let page: Sighting[] = [];
  const flush = async () => {
    if (page.length > 0)
      await output.table(
        COLUMNS,
        page.map((seen) => rowOf(seen, now)),
      );
    page = [];
  };
  for await (const seen of messages) {
    count++;
    if (isJson) await output.json(sightingJson(seen, withPayload));
    else if (withPayload) {
      const line = rowOf(seen, now).map(escapeControl).join("  ");
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

function rowOf({ deadline, id, key }: Sighting, now: number): string[] {
  return [formatDistance(deadline, now), id, key ?? "-"];
}

/** Rows per piece. */
const PAGE = 100;

/**
 * The command to run next about a message that was found, and why. Returns undefined if there is nothing to do but
 * wait, or if the command cannot be pasted. `now` is the server's time (epoch ms).
 */
export function nextStep(
  seen: Sighting,
  now: number,
  commandLine: (...words: readonly string[]) => string | undefined,
): string | undefined {
  const [why, ...words] = stepOf(seen, now);
  if (why === undefined) return undefined;
  const command = commandLine(...words);
  return command === undefined ? undefined : `${why}: ${command}`;
}

/** Why, and then the words of the command; empty if there is nothing to do but wait. */
function stepOf(seen: Sighting, now: number): readonly string[] {
  const { state, queue, id, deadline, readyAt = Infinity } = seen;
  if (state === "dead") {
    return isUnreadable(seen)
      ? ["It is unreadable and cannot be redriven. To remove it", "dead", "remove", queue, id]
      : ["To deliver it again", "dead", "redrive", queue, id];
  }
  if (state === "delayed" || state === "retrying") {
    if (isOverdue(deadline, now)) return ["It is overdue. To find out why", "doctor", queue];
    return state === "retrying"
      ? ["To retry it now", "deliver-now", queue, id]
      : ["To cancel it (see also deliver-now and reschedule)", "cancel", queue, id];
  }
  return now - readyAt < BOUNDS.backlog ? [] : ["To find out what holds it up", "doctor", queue];
}
