import { defineFragment } from "../../fragment.ts";

/**
 * `appendDead(entry, group, reason)`: appends a dead letter for the group; returns the reply of `XADD`, or a table
 * with its error. `entry.n` must be the number of deliveries, including the last one.
 * `deadFields(entry, group, reason)`: the fields of this dead letter and their values, in one list.
 *
 * A dead letter has the fields of an entry, and `r`, the reason. The first part of its id is the time of its death.
 */
export const deadLetter = defineFragment({
  keys: ["dead"],
  lua: /* lua */ `
local function deadFields(entry, group, reason)
  local fields = { "a", entry.a, "p", entry.p, "n", tostring(entry.n), "g", group, "r", reason }
  if entry.t and entry.t ~= "" then
    fields[#fields + 1] = "t"
    fields[#fields + 1] = entry.t
  end
  return fields
end
local function appendDead(entry, group, reason)
  return redis.pcall("XADD", dead, "*", unpack(deadFields(entry, group, reason)))
end
`,
});
