import { defineFragment } from "../fragment.ts";
import { forget } from "../fragments/forget.ts";
import { may } from "../fragments/may.ts";
import { dropRetries } from "./retry-moves.ts";
import { leaveRoom } from "./room.ts";

/**
 * Takes messages out of the places in which they wait: `resolve` says in which one each is.
 *
 * `mayLeave(places[, isLater])`: raises Redis's error if removing from these places is not permitted; `isLater`: the caller
 * writes something else before. Where the first command that removes does so itself, nothing is tried.
 * `leave(place, names, elementsAre)`: removes the messages with these names from the place. Addresses in the insertion order
 * stay behind; whole members go.
 */
export const leaving = defineFragment({
  keys: ["timeouts"],
  rarely: [dropRetries, forget, leaveRoom, may],
  lua: /* lua */ `
local function mayLeave(places, isLater)
  for _, place in ipairs(places) do
    if place == "retrying" then rare().mayDropRetries()
    elseif place == "waiting" then rare().mayLeaveRoom()
    elseif isLater or #places > 1 then rare().may("ZREM", timeouts) end
  end
end
local function leave(place, names, elementsAre)
  if place == "retrying" then return rare().dropRetries(names, #names) end
  if place == "waiting" then return rare().leaveRoom(names) end
  redis.call("ZREM", timeouts, unpack(names))
  if elementsAre == "members" then rare().forget(names) end
end
`,
});
