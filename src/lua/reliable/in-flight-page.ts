import { clock } from "../fragments/clock.ts";
import { readTrailer } from "../fragments/trailer.ts";
import { entryOf, unpackEntry, type Entry } from "../places/stream.ts";
import { handedOut, inFlight } from "../places/in-flight.ts";
import {
  asArray,
  asBuffer,
  asBuffers,
  asNumber,
  asRow,
  asRows,
  asText,
  orNothing,
} from "../reply.ts";
import { defineScript } from "../script.ts";

/** An entry in flight for a group. */
export interface InFlightEntry {
  readonly entry: Entry;
  readonly consumer: string;
  /** Since when it is in flight (epoch ms). */
  readonly takenAt: number;
  /** How often this entry was delivered to the group. */
  readonly deliveries: number;
}

/** Some entries in flight for a group. */
export interface InFlightPage {
  readonly entries: readonly InFlightEntry[];
  /** The entry behind which the next page begins; undefined after the last page. */
  readonly next: string | undefined;
}

/**
 * Returns up to `limit` entries and about `maxBytes` that are in flight for the group, in the order of the stream, from
 * the first one behind `after`, or from the first one of all if that is empty. Entries whose data are gone or have a
 * foreign format are left out.
 */
export const inFlightPage = defineScript({
  name: "in-flight-page",
  keys: ["stream"],
  args: ["group", "after", "limit", "maxBytes"],
  needs: [clock, inFlight],
  lua: /* lua */ `
local now = math.floor(clock() / 1000)
local rows = inFlight(group, after == "" and "-" or "(" .. after, "+", limit)
local found, size, last = {}, 0, false
for _, row in ipairs(rows) do
  if size >= tonumber(maxBytes) then return { last, found } end
  last = row[1]
  local entry = redis.call("XRANGE", stream, last, last)[1]
  if entry then
    for _, word in ipairs(entry[2]) do size = size + #word end
    found[#found + 1] = { last, entry[2], row[2], now - row[3], row[4] }
  end
end
return { #rows == tonumber(limit) and last, found }
`,
  reply: (raw): InFlightPage => {
    const { next, rows } = asRow(raw, { next: orNothing(asText), rows: asArray });
    return {
      next,
      entries: rows.flatMap((row) => {
        const { id, fields, ...others } = asRow(row, {
          id: asText,
          fields: asBuffers,
          consumer: asText,
          takenAt: asNumber,
          deliveries: asNumber,
        });
        const entry = unpackEntry(id, fields);
        return entry === undefined ? [] : [{ entry, ...others }];
      }),
    };
  },
});

/** A message that a consumer was handed, without its payload. */
export interface RunningEntry {
  readonly address: Buffer;
  readonly key: string | undefined;
  readonly consumer: string;
  /** Since when it is in flight (epoch ms). */
  readonly since: number;
  /** 1 on the first delivery. */
  readonly attempt: number;
}

/**
 * Returns which messages the consumers of the group were handed, `limit` entries behind `after` at most, in the order of the
 * stream; and the entry behind which the next page begins. What they hold back in strict order is left out.
 */
export const runningPage = defineScript({
  name: "running-page",
  keys: ["stream"],
  args: ["group", "after", "limit"],
  needs: [clock, entryOf, handedOut, inFlight, readTrailer],
  lua: /* lua */ `
local now = math.floor(clock() / 1000)
local rows = inFlight(group, after == "" and "-" or "(" .. after, "+", limit)
local found, last = {}, false
for _, row in ipairs(rows) do
  last = row[1]
  local read = redis.call("XRANGE", stream, last, last)[1]
  local entry = read and entryOf(read[2])
  if entry and (not entry.g or entry.g == group) and wasHandedOut(entry, row[4]) then
    local key = readTrailer(entry.t or "") or false
    for _, value in ipairs({ entry.a, key, row[2], now - row[3], entry.n + 1 }) do found[#found + 1] = value end
  end
end
return { #rows == tonumber(limit) and last, found }
`,
  reply: (raw): { readonly next: string | undefined; readonly found: readonly RunningEntry[] } =>
    asRow(raw, {
      next: orNothing(asText),
      found: (rows) =>
        asRows(rows, {
          address: asBuffer,
          key: orNothing(asText),
          consumer: asText,
          since: asNumber,
          attempt: asNumber,
        }),
    }),
});
