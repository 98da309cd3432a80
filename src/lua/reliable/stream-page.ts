import { clock } from "../fragments/clock.ts";
import { entryOf, unpackEntry, type Entry } from "../places/stream.ts";
import { inFlight } from "../places/in-flight.ts";
import { fieldsOf, streamId } from "../fragments/stream-info.ts";
import { readTrailer } from "../fragments/trailer.ts";
import { asArray, asBuffers, asNumber, asRow, asText, orNothing, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/** A group that has not finished an entry. */
export interface GroupClaim {
  /** The group's name; undefined if the stream has no groups yet. */
  readonly group: string | undefined;
  /** The consumer that it is in flight for; undefined if it is ready. */
  readonly consumer: string | undefined;
  /** Since when it is in flight (epoch ms); 0 if it is ready. */
  readonly takenAt: number;
  /** How often this entry was delivered to the group. */
  readonly deliveries: number;
}

/** An entry of the stream, and the groups that still need it. */
export interface ClaimedEntry {
  readonly entry: Entry;
  /** Empty if every group has finished the entry. */
  readonly claims: readonly GroupClaim[];
}

/** Some entries of the stream. */
export interface StreamPage {
  readonly entries: readonly ClaimedEntry[];
  /** The entry behind which the next page begins; undefined after the last page. */
  readonly next: string | undefined;
  /** How many groups the stream has. */
  readonly groupCount: number;
}

/**
 * Returns up to `limit` entries and about `maxBytes` behind `after`, each with the groups that have not finished it.
 * With an address `wanted` or a business key `key`, only those of that message. Entries in a foreign format are left
 * out.
 */
export const streamPage = defineScript({
  name: "stream-page",
  keys: ["stream"],
  args: ["wanted", "key", "after", "limit", "maxBytes"],
  needs: [clock, entryOf, inFlight, fieldsOf, readTrailer, streamId],
  lua: /* lua */ `
limit, maxBytes = tonumber(limit), tonumber(maxBytes)
-- Redis refuses a range behind the greatest of all ids.
local greatest = "18446744073709551615-18446744073709551615"
local found, ids, seen, size, isMore = {}, {}, 0, 0, redis.call("EXISTS", stream) == 1
local groups = isMore and redis.call("XINFO", "GROUPS", stream) or {}
while isMore and seen < limit and size < maxBytes do
  -- Entries may be large. So read a few at a time: as many as probably fit.
  local room = seen == 0 and 2 or math.ceil((maxBytes - size) * seen / size)
  local count = math.min(10, limit - seen, room)
  local some = after == greatest and {}
    or redis.call("XRANGE", stream, after == "" and "-" or "(" .. after, "+", "COUNT", count)
  for _, pair in ipairs(some) do
    after = pair[1]
    local fields = pair[2]
    for i = 1, #fields do size = size + #fields[i] end
    local entry = entryOf(fields)
    local isOfKey = key ~= "" and entry and readTrailer(entry.t or "") == key
    if entry and (wanted == "" and key == "" or entry.a == wanted or isOfKey) then
      ids[#ids + 1] = pair[1]
      found[#found + 1] = { pair[1], fields, {}, entry.g or false }
    end
  end
  seen = seen + #some
  isMore = #some == count
end
local now = math.floor(clock() / 1000)
for _, fields in ipairs(#ids > 0 and groups or {}) do
  local group, rowOf = fieldsOf(fields), {}
  if group.pending > 0 then
    local all = 2 * #ids + 16
    local rows = inFlight(group.name, ids[1], ids[#ids], all)
    for _, row in ipairs(rows) do rowOf[row[1]] = row end
    for _, id in ipairs(#rows == all and ids or {}) do
      rowOf[id] = rowOf[id] or inFlight(group.name, id, id, 1)[1]
    end
  end
  for _, row in ipairs(found) do
    local claim = rowOf[row[1]]
    if row[4] and row[4] ~= group.name then claim = nil
    elseif claim then claim = { group.name, claim[2], now - claim[3], claim[4] }
    elseif compareIds(row[1], group["last-delivered-id"]) > 0 then claim = { group.name, false, 0, 0 } end
    row[3][#row[3] + 1] = claim
  end
end
for _, row in ipairs(#groups == 0 and found or {}) do row[3][1] = { row[4], false, 0, 0 } end
return { isMore and after, found, #groups }
`,
  reply: (raw): StreamPage => {
    const { next, rows, groupCount } = asRow(raw, {
      next: orNothing(asText),
      rows: asArray,
      groupCount: asNumber,
    });
    return {
      groupCount,
      next,
      entries: rows.flatMap((row) => {
        const { id, fields, claims } = asRow(row, {
          id: asText,
          fields: asBuffers,
          claims: (list) => asArray(list).map(asClaim),
        });
        const found = unpackEntry(id, fields);
        return found === undefined ? [] : [{ entry: found, claims }];
      }),
    };
  },
});

function asClaim(raw: RawReply): GroupClaim {
  return asRow(raw, {
    group: orNothing(asText),
    consumer: orNothing(asText),
    takenAt: asNumber,
    deliveries: asNumber,
  });
}
