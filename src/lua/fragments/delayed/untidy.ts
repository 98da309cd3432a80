import { byElements } from "../../family.ts";
import { defineFragment } from "../../fragment.ts";
import { asNumber, type RawReply } from "../../reply.ts";
import { deadBelow } from "./dead-below.ts";
import { hasStrays } from "./has-strays.ts";
import { isLong } from "./is-long.ts";

/** The parts of a queue that need tidying. */
export interface Untidy {
  /** The insertion order. */
  readonly order: boolean;
  /** The index of business keys. */
  readonly businessKeys: boolean;
}

const headIsDead = /* lua */ `
    local head = redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")
    local first = redis.call("LINDEX", order, 0)
    isOrder = isOrder or first and deadBelow(head[1], tonumber(head[2]))(first)`;

/**
 * `untidy()`: where a step of tidying would find something to do: 1 in the insertion order, 2 in the index, 3 in both,
 * 0 in neither. O(1), except for reading the head of the ZSET. {@link asUntidy} reads the number.
 *
 * Runs behind a transfer, so it must not raise an error. If a key has the wrong type it returns 3, and the step of
 * tidying reports the error.
 */
export const untidy = byElements((elements) =>
  defineFragment({
    keys: ["timeouts", "order", "compacted", "businessKeys"],
    needs: elements === "members" ? [hasStrays] : [isLong, deadBelow],
    lua: /* lua */ `
local function untidy()
  local function look()
    local live = redis.call("ZCARD", timeouts)
    if live == 0 then return redis.call("EXISTS", order, compacted, businessKeys) > 0 and 1 or 0 end
    local isOrder = redis.call("EXISTS", compacted) == 1 or ${elements === "members" ? "hasStrays(live)" : "isLong(live)"}
    ${elements === "members" ? "" : headIsDead}
    return (isOrder and 1 or 0) + (redis.call("HLEN", businessKeys) > live and 2 or 0)
  end
  local isDone, found = pcall(look)
  return isDone and found or 3
end
`,
  }),
);

/** Reads what the fragment `untidy` returns. */
export function asUntidy(raw: RawReply | undefined): Untidy {
  const found = asNumber(raw);
  return { order: found % 2 === 1, businessKeys: found >= 2 };
}
