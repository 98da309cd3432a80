import { defineFragment } from "../../fragment.ts";
import { entry } from "./entry.ts";
import { finish } from "./finish.ts";
import { inFlightFor } from "./in-flight-for.ts";

/**
 * `settle(group, consumer, heldCount, ids, isOwn, write)`: moves entries that are in flight for the consumer. For each of
 * them `write(entry, i)` writes the message somewhere else and returns Redis's reply, or false to write nothing. Then
 * the entries are finished. Returns a 1 or a 0 for each id, whether it was written and finished; Redis's error if
 * it refused a write; and Redis's error if it refused to set an entry aside.
 * `finishWritten(group, ids, isOwn, write)`: the same for entries that are known to be in flight.
 *
 * Redis rolls nothing back, so an entry is written before it is finished. If the first write is refused, nothing has
 * changed. If a later one is refused, the entries before it are finished, since they would be delivered twice
 * otherwise. A caller that sends all ids again gets a 0 for each of these entries.
 *
 * An entry that was deleted from the stream is only acknowledged. One in a foreign format is set aside: its fields go
 * to the unreadable messages. If Redis refuses that, the entry stays in flight, and the others do not wait for it.
 */
export const settle = defineFragment({
  keys: ["unreadable"],
  needs: [entry, finish, inFlightFor],
  lua: /* lua */ `
local function finishWritten(group, ids, isOwn, write)
  local settled, done, refused, heldUp = {}, {}, nil, nil
  if #ids > 0 then mayFinish(group) end
  for i, id in ipairs(ids) do
    local entry, fields = readEntry(id)
    local written = entry and write(entry, i)
    if type(written) == "table" then
      refused = written
      break
    end
    settled[i] = written and 1 or 0
    local put = not entry and fields and redis.pcall("RPUSH", unreadable, table.concat(fields))
    if type(put) == "table" then heldUp = put else done[#done + 1] = id end
  end
  finish(group, done, isOwn)
  return settled, refused, heldUp
end
local function settle(group, consumer, heldCount, ids, isOwn, write)
  local mine = inFlightFor(group, consumer, ids, heldCount)
  local settled, places, own = {}, {}, {}
  for i, id in ipairs(ids) do
    settled[i] = 0
    if mine[id] then
      own[#own + 1] = id
      places[#places + 1] = i
      -- Settle an id that is listed twice only once.
      mine[id] = nil
    end
  end
  local written, refused, heldUp = finishWritten(group, own, isOwn, function(entry, k)
    return write(entry, places[k])
  end)
  for k, i in ipairs(places) do settled[i] = written[k] end
  return settled, refused, heldUp
end
`,
});
