import { clock } from "../fragments/clock.ts";
import { asFlag } from "../reply.ts";
import { defineScript } from "../script.ts";

/**
 * The numbers of a queue's past, in the HASH `delayline_history`: each minute of a day, and each of 90 days.
 *
 * - `last`: four numbers with blanks between them: the first minute that was noted, the last one, the count of finished
 *   messages at that time (empty if it was unknown), and how many have finished on that day;
 * - `h0` to `h24`: an hour each, its number and 60 slots; `d0` to `d3`: 30 days each, their number and 30 slots. They are
 *   used in turn, so there are never more, and one whose number is not the one that is looked for is out of date.
 *
 * A number is that of minutes, hours, days, or 30 days since 1970. A slot has a byte for each of {@link NOTED}: 0 if it is
 * unknown, one more than the value up to 15, and beyond that steps of 8 %, up to 1.5 thousand million.
 */

/** The numbers that are noted, in the order of their bytes. */
export const NOTED = [
  "delayed",
  "ready",
  "inFlight",
  "retries",
  "dead",
  "finished",
  "late",
] as const;

export type Noted = (typeof NOTED)[number];

/** The greatest value that has a byte of its own, and how much greater each further one is. */
const EXACT = 15;
const RATIO = 1.08;

/** A kind of slots, and how many of them a field of the HASH has. */
interface Slots {
  /** In milliseconds. */
  readonly step: number;
  readonly inField: number;
  readonly fieldCount: number;
  /** What the names of the fields begin with. */
  readonly prefix: string;
}

export const MINUTES: Slots = { step: 60_000, inField: 60, fieldCount: 25, prefix: "h" };
export const DAYS: Slots = { step: 86_400_000, inField: 30, fieldCount: 4, prefix: "d" };

/**
 * Notes the numbers of a queue, once a minute whoever runs it; returns whether it has. `finished` is the count since the
 * stream was created, and empty if that is unknown: the minute gets what has finished since the last note, per minute. A
 * day gets the greatest value of each number, and the sum of what has finished.
 *
 * The queue forgets its past two days after the last note, or after the time that it goes back, at most 91 days.
 *
 * One command writes everything, so a refusal leaves nothing half done. EXPIRE comes first, too: it proves that the user may
 * set the time, or the key would stay for ever.
 */
export const noteHistory = defineScript({
  name: "note-history",
  keys: ["history"],
  args: ["delayed", "ready", "inFlight", "retries", "dead", "finished", "late"],
  needs: [clock],
  lua: /* lua */ `
local minute = math.floor(clock() / 60000000)
local hour, day = math.floor(minute / 60), math.floor(minute / 1440)
local month = math.floor(day / ${DAYS.inField})
local hourField = "${MINUTES.prefix}" .. hour % ${MINUTES.fieldCount}
local monthField = "${DAYS.prefix}" .. month % ${DAYS.fieldCount}
local found = redis.call("HMGET", history, "last", hourField, monthField)
local first, last, before, sum = string.match(found[1] or "", "^(%d+) (%d+) (%d*) (%d+)$")
first, last, before, sum = tonumber(first), tonumber(last), tonumber(before), tonumber(sum)
-- The server's clock may have been set back: by a little it catches up, by more the past is in the future.
if last and last >= minute and last < minute + 60 then return 0 end
if not last or last > minute then first, last, before, sum = minute, nil, nil, 0 end
if last and math.floor(last / 1440) < day then sum = 0 end
local count, pace = tonumber(finished), nil
-- A count falls if the stream was deleted and created again.
if last and before and count and count >= before then
  pace = (count - before) / (minute - last)
  sum = sum + pace * math.min(minute - last, minute - day * 1440)
end
local function level(value)
  value = tonumber(value)
  if not value or value < 0 then return 0 end
  if value < ${EXACT + 1} then return math.floor(value) + 1 end
  return math.min(255, ${EXACT + 2} + math.floor(math.log(value / ${EXACT + 1}) / math.log(${RATIO}) + 0.5))
end
local function put(field, number, size, slot, values)
  local length = ${NOTED.length}
  local head = struct.pack(">I4", number)
  local isOurs = field and #field == 4 + size * length and string.sub(field, 1, 4) == head
  local slots = isOurs and string.sub(field, 5) or string.rep("\\0", size * length)
  local bytes = {}
  for i = 1, length do
    bytes[i] = string.char(math.max(level(values[i]), string.byte(slots, slot * length + i)))
  end
  return head .. string.sub(slots, 1, slot * length) .. table.concat(bytes) .. string.sub(slots, (slot + 1) * length + 1)
end
local minutes = { delayed, ready, inFlight, retries, dead, pace, late }
local days = { delayed, ready, inFlight, retries, dead, pace and sum, late }
local kept = math.max(2880, math.min(131040, minute - first)) * 60
redis.call("EXPIRE", history, kept)
redis.call("HSET", history,
  "last", string.format("%.0f %.0f %s %.0f", first, minute, count and string.format("%.0f", count) or "", sum),
  hourField, put(found[2], hour, ${MINUTES.inField}, minute % 60, minutes),
  monthField, put(found[3], month, ${DAYS.inField}, day % ${DAYS.inField}, days))
redis.call("EXPIRE", history, kept)
return 1
`,
  reply: asFlag,
});

/** The fields of the HASH that hold these slots, the first and the last by their numbers. */
export function fieldsWith(
  { inField, fieldCount, prefix }: Slots,
  first: number,
  last: number,
): { readonly number: number; readonly field: string }[] {
  const [from, to] = [Math.floor(first / inField), Math.floor(last / inField)];
  return Array.from({ length: to - from + 1 }, (_, i) => {
    const number = from + i;
    return { number, field: `${prefix}${number % fieldCount}` };
  });
}

/** The slots of a field; undefined if it is not the one with this number. */
export function slotsIn(bytes: Buffer | null | undefined, number: number): Buffer | undefined {
  if (!bytes || bytes.length < 4 || bytes.readUInt32BE(0) !== number) return undefined;
  return bytes.subarray(4);
}

/** The value of each byte; undefined if it is unknown. */
export const VALUES: readonly (number | undefined)[] = Array.from({ length: 256 }, (_, byte) => {
  if (byte === 0) return undefined;
  return byte <= EXACT + 1 ? byte - 1 : Math.round((EXACT + 1) * RATIO ** (byte - EXACT - 2));
});
