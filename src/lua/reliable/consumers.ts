import { inFlight } from "../places/in-flight.ts";
import { consumersOf } from "../fragments/stream-info.ts";
import { asArray, asFlag, asNumber, asRow, asText } from "../reply.ts";
import { defineScript } from "../script.ts";

/** A consumer of a group, as Redis knows it. */
export interface ConsumerInfo {
  readonly name: string;
  /** How many entries are in flight for it. */
  readonly inFlight: number;
  /** Milliseconds since Redis last saw it. */
  readonly idle: number;
}

/** Returns the consumers of a group; none if the stream or the group is missing. */
export const consumers = defineScript({
  name: "consumers",
  keys: ["stream"],
  args: ["group"],
  needs: [consumersOf],
  lua: /* lua */ `
local rows = {}
for i, found in ipairs(consumersOf(group)) do rows[i] = { found.name, found.pending, found.idle } end
return rows
`,
  reply: (raw) =>
    asArray(raw).map((row): ConsumerInfo =>
      asRow(row, { name: asText, inFlight: asNumber, idle: asNumber }),
    ),
});

/**
 * Gives a sign of life for a consumer, which renews its leases. Returns the ids of the entries in flight for it, in
 * order: up to `limit` ids behind `after`, or from the first one if `after` is empty.
 *
 * Redis records when it last saw a consumer. An XCLAIM of an entry that the consumer already has updates this, while
 * a read that blocks does not on Redis 7.0. A consumer without entries has no lease to renew, so nothing is written. But
 * one that has a read under way (`isReading`, 1 or 0) may block for long, and others remove a consumer that is long gone.
 * Reading its history, which is empty, shows that it lives.
 * With IDLE the entry itself is not renewed: Redis goes on to say since when it is in flight.
 */
export const beat = defineScript({
  name: "beat",
  keys: ["stream"],
  args: ["group", "consumer", "after", "limit", "isReading"],
  needs: [inFlight],
  lua: /* lua */ `
local found = inFlight(group, after == "" and "-" or "(" .. after, "+", limit, consumer)
local ids = {}
for i, row in ipairs(found) do ids[i] = row[1] end
-- One successful XCLAIM is enough. From Redis 7.0 on it removes an entry whose data are gone, and claims nothing. Such
-- an id is returned nevertheless, because a page that is not full counts as the last one.
for _, row in ipairs(found) do
  if redis.call("XCLAIM", stream, group, consumer, 0, row[1], "IDLE", row[3], "JUSTID")[1] then break end
end
if #found == 0 and after == "" and isReading == "1" then
  redis.pcall("XREADGROUP", "GROUP", group, consumer, "COUNT", 1, "STREAMS", stream, "0")
end
return ids
`,
  reply: (raw) => asArray(raw).map(String),
});

/**
 * Removes a consumer that has nothing in flight; returns whether it is gone.
 *
 * A consumer with entries in flight stays, since Redis would drop them with it.
 */
export const leave = defineScript({
  name: "leave",
  keys: ["stream"],
  args: ["group", "consumer"],
  needs: [inFlight],
  lua: /* lua */ `
if #inFlight(group, "-", "+", 1, consumer) > 0 then return 0 end
local done = redis.pcall("XGROUP", "DELCONSUMER", stream, group, consumer)
if type(done) == "number" or redis.call("EXISTS", stream) == 0 or done.err:find("^%-?NOGROUP") then return 1 end
return done
`,
  reply: asFlag,
});
