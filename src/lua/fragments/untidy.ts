import { asNumber, type RawReply } from "../script.ts";

/** What has something to tidy. */
export interface Untidy {
  /** The insertion order. */
  readonly order: boolean;
  /** The index of business keys. */
  readonly index: boolean;
}

/** `isLong(live)`: whether the LIST is to be compacted, with so many live messages. */
export const isLong = /* lua */ `
local function isLong(live)
  return redis.call("LLEN", order) > 2 * live + 2000
end`;

/**
 * `hasStrays(live)`: whether the LIST of a queue with `interop: "redisson"` has something that Redisson
 * would not have put there, with so many live messages: more elements than messages, or an address at
 * one of its ends. Addresses between whole members do not show before the first of them is dead.
 * Requires `addresses`.
 */
export const hasStrays = /* lua */ `
local function hasStrays(live)
  if redis.call("LLEN", order) > live then return true end
  local first, last = redis.call("LINDEX", order, 0), redis.call("LINDEX", order, -1)
  return first and (isAddress(first) or isAddress(last))
end`;

/**
 * `untidy()`: whether a step of tidying would find something to do: 1 in the insertion order, 2 in the
 * index, 3 in both, else 0. O(1), but for a look at the ZSET's head. {@link asUntidy} reads it.
 *
 * It comes behind a transfer, so it raises no error: where a key has another type the step will tell.
 * Requires `addresses`, and `deadBelow` unless `isExact`.
 */
export const untidy = (isExact: boolean) => /* lua */ `${isExact ? hasStrays : isLong}
local function untidy()
  local function look()
    local live = redis.call("ZCARD", timeouts)
    if live == 0 then return redis.call("EXISTS", order, compacted, index) > 0 and 1 or 0 end
    local isOrder = redis.call("EXISTS", compacted) == 1${isExact ? " or hasStrays(live)" : " or isLong(live)"}
    ${isExact ? "" : headIsDead}
    return (isOrder and 1 or 0) + (redis.call("HLEN", index) > live and 2 or 0)
  end
  local isDone, found = pcall(look)
  return isDone and found or 3
end`;

const headIsDead = /* lua */ `
    local head = redis.call("ZRANGE", timeouts, 0, 0, "WITHSCORES")
    local first = redis.call("LINDEX", order, 0)
    isOrder = isOrder or first and deadBelow(head[1], tonumber(head[2]))(first)`;

/** Reads what the fragment `untidy` answers. */
export function asUntidy(raw: RawReply | undefined): Untidy {
  const found = asNumber(raw);
  return { order: found % 2 === 1, index: found >= 2 };
}
