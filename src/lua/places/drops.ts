import { defineFragment } from "../fragment.ts";

/** Why a message was dropped: the condition that it was offered with, or another run of its schedule. */
export type DropReason = "onlyIf" | "deliverWithin" | "overlap";

/** The reasons, by the number that Lua has for them. */
export const DROP_REASONS: readonly DropReason[] = ["onlyIf", "deliverWithin", "overlap"];

/** A message that was dropped, as Redis remembers it. */
export interface Drop {
  readonly address: Buffer;
  /** Empty without one. */
  readonly key: string;
  readonly reason: DropReason;
  /** When it was dropped (epoch ms). */
  readonly at: number;
}

/** How many drops a queue remembers. */
const KEPT = 1000;

/**
 * `noteDrops(rows, total, now)`: remembers messages that were dropped in the HASH that counts them, in fields that are used in
 * turn: of each its address, the number of the reason, and its key ("" without one), one after another. `total`: how many
 * were dropped before. For people: a refusal changes nothing else.
 *
 * A value is `reason(1) | when, epoch ms (8, big-endian double) | length of the address(1) | address | key`. {@link unpackDrop}
 * reads it.
 */
export const noteDrops = defineFragment({
  keys: ["dropped"],
  lua: /* lua */ `
local function noteDrops(rows, total, now)
  local found = {}
  for i = 1, #rows, 3 do
    local address, reason, key = rows[i], rows[i + 1], rows[i + 2]
    found[#found + 1] = "#" .. (total + (i - 1) / 3) % ${KEPT}
    found[#found + 1] = struct.pack(">BdB", reason, now / 1000, #address) .. address .. key
  end
  redis.pcall("HSET", dropped, unpack(found))
end
`,
});

/** The fields that hold them. */
export const DROP_FIELDS: readonly string[] = Array.from({ length: KEPT }, (_, i) => `#${i}`);

/** Reads a value; undefined for a foreign one. */
export function unpackDrop(value: Buffer): Drop | undefined {
  const [reason = "", end] = [DROP_REASONS[(value[0] ?? 0) - 1], 10 + (value[9] ?? 0)];
  if (reason === "" || value.length < end) return undefined;
  return {
    address: value.subarray(10, end),
    key: value.toString("utf8", end),
    reason,
    at: value.readDoubleBE(1),
  };
}
