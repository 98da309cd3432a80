import { countBeforeRedrive } from "../../inspect/before-redrive.ts";
import { readablePayload } from "../../inspect/readable-payload.ts";
import type { Sighting } from "../../inspect/sighting.ts";
import { formatDistance, formatDuration, formatInstant } from "./format-time.ts";
import { quoted } from "./output.ts";
import { formatCount, formatFacts } from "./table.ts";

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
