import { consumersOf } from "../fragments/stream/consumers-of.ts";
import { asArray, asNumber, asRow, asText } from "../reply.ts";
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
