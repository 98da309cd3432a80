import { defineFragment } from "../fragment.ts";
import { streamId } from "../fragments/stream-info.ts";
import { turnBytes } from "./room.ts";
import { unneededBut } from "./settle.ts";

/*
 * What is in hand: ready or in flight. A limit of it needs no count of its own. For the whole queue it is the length of the stream,
 * which holds an entry until its last group has finished it. For a lane, `hands` has the entries that were appended for its
 * messages, `length(1) | lane | entry`, all with the score 0: a slot is an entry, and lasts as long as it. So a settlement has
 * nothing to record, and a dying process nothing to lose. An entry that is gone leaves `hands` at the next count.
 */

/** `goneHands(found)`: those of these members of `hands` whose entries are gone. Reads only. */
export const goneHands = defineFragment({
  keys: ["stream"],
  needs: [streamId, unneededBut],
  lua: /* lua */ `
local groups = nil
local function goneHands(found)
  if groups == nil then
    local told = redis.pcall("XINFO", "GROUPS", stream)
    -- Without a stream nothing is in hand; with one that nobody reads, or that Redis tells nothing of, everything is.
    groups = not told.err and told or redis.call("EXISTS", stream) == 1 and {}
  end
  local ids, memberOf, gone = {}, {}, {}
  for i, member in ipairs(found) do
    local id = member:sub(2 + (member:byte(1) or 0))
    -- What is no id is nothing in hand.
    if not groups or not id:match("^%d+%-%d+$") then gone[#gone + 1] = member
    else ids[#ids + 1], memberOf[id] = id, member end
  end
  if #ids > 0 and #groups > 0 then
    for _, id in ipairs(unneededBut(nil, groups, ids, {})) do gone[#gone + 1] = memberOf[id] end
  end
  return gone
end
`,
});

/**
 * `handsOf(lane, enough)`: how many messages of a lane are in hand; if there seem to be fewer than `enough`, without asking
 * whether they still are. Then the second result is true, and there may be fewer.
 * `dropHands(found)`: removes those of these members of `hands` whose entries are gone; returns how many.
 */
export const countHands = defineFragment({
  keys: ["hands"],
  needs: [goneHands, turnBytes],
  lua: /* lua */ `
local function dropHands(found)
  local gone = goneHands(found)
  if #gone > 0 then redis.call("ZREM", hands, unpack(gone)) end
  return #gone
end
local function handsOf(lane, enough)
  local prefix = lanePrefix(lane)
  local range = { "[" .. prefix, "(" .. prefix .. "\\255", "BYLEX", "LIMIT", 0, enough }
  local sure = 0
  while true do
    local found = redis.call("ZRANGE", hands, unpack(range))
    if #found < enough then return #found, #found > sure end
    -- Behind those that are gone there may be others.
    local gone = dropHands(found)
    if gone == 0 then return #found end
    sure = #found - gone
  end
end
`,
});

/**
 * `tidyHands(cursor)`: looks through some of `hands`, and removes those whose entries are gone; returns the next cursor, as
 * ZSCAN does.
 */
export const tidyHands = defineFragment({
  keys: ["hands"],
  needs: [countHands],
  lua: /* lua */ `
local function tidyHands(cursor)
  local page, found = redis.call("ZSCAN", hands, cursor, "COUNT", 50), {}
  for i = 1, #page[2], 2 do found[#found + 1] = page[2][i] end
  if #found > 0 then dropHands(found) end
  return page[1]
end
`,
});
