import { clock } from "../fragments/clock.ts";
import { asArray, asNumber, asRow, asRows, asText } from "../reply.ts";
import { defineScript } from "../script.ts";

/** What a lane has used of its rate: the microseconds from now on until it has all of its burst again. */
export interface UsedPace {
  readonly name: string;
  readonly used: number;
}

/**
 * Returns what some lanes have used of their rates; and the `cursor` of the next call, as ZSCAN does: "0" at first, and after the
 * last. A lane may come twice. Reads only.
 */
export const usedPaces = defineScript({
  name: "used-paces",
  keys: ["lanePaces"],
  args: ["cursor"],
  needs: [clock],
  lua: /* lua */ `
local now, page, found = clock(), redis.call("ZSCAN", lanePaces, cursor, "COUNT", 100), {}
for i = 1, #page[2], 2 do
  local used = math.ceil(tonumber(page[2][i + 1]) - now)
  if used > 0 then found[#found + 1], found[#found + 2] = page[2][i], used end
end
return { page[1], found }
`,
  reply: (raw): { readonly cursor: string; readonly paces: UsedPace[] } => {
    const { cursor, rows } = asRow(raw, { cursor: asText, rows: asArray });
    return { cursor, paces: asRows(rows, { name: asText, used: asNumber }) };
  },
});

/** Notes here what lanes have used of their rates in another partition, which they have left. Never less than is noted. */
export const raisePaces = defineScript({
  name: "raise-paces",
  keys: ["lanePaces"],
  args: [],
  each: ["name", "used"],
  needs: [clock],
  lua: /* lua */ `
local now, paces = clock(), {}
local last = tonumber(redis.call("ZRANGE", lanePaces, -1, -1, "WITHSCORES")[2] or nil) or 0
for each row do
  local noted = tonumber(redis.call("ZSCORE", lanePaces, name) or nil) or 0
  local arrival = math.max(noted, now + used)
  last = math.max(last, arrival)
  paces[#paces + 1], paces[#paces + 2] = string.format("%.0f", arrival), name
end
redis.call("ZADD", lanePaces, unpack(paces))
-- If that is refused, they stay until lanes are dealt turns.
redis.pcall("EXPIRE", lanePaces, math.ceil((last - now) / 1000000) + 1)
`,
  reply: () => undefined,
});
