import type { DuePlace } from "../../nouns/places.ts";
import { asDeadline, replied } from "../fragments/deadline.ts";
import { asMember, resolve } from "../places/key-index.ts";
import {
  asBuffer,
  asFlags,
  asNumber,
  asRow,
  asRows,
  asText,
  orNothing,
  type RawReply,
} from "../reply.ts";
import { defineScript } from "../script.ts";

/** A delayed message as scripts return it. */
export interface DelayedMember {
  readonly deadline: number;
  readonly member: Buffer;
}

/** A message as scripts return it that is in one of these places; "waiting": it is due, and waits for its turn in a flow. */
export interface DueMember extends DelayedMember {
  readonly place: DuePlace | "waiting";
  /** The address of a retrying message, which keeps its id; its deadline is when it is due next. */
  readonly address: Buffer | undefined;
}

/** Reads a list of deadlines, each followed by its member. */
export function asMembers(raw: RawReply | undefined): DelayedMember[] {
  return asRows(raw, { deadline: asDeadline, member: asBuffer });
}

/**
 * Returns the delayed and retrying messages that the rows name, by address or by business key, in the order of the rows;
 * and how many rows it has looked up: it stops early at `maxBytes`. O(log N) for each row.
 */
export const get = defineScript({
  name: "get",
  keys: ["timeouts"],
  args: ["maxBytes"],
  each: ["id", "key"],
  needs: [resolve, replied],
  rarely: [asMember],
  lua: /* lua */ `
local messages, bytes, looked = {}, 0, 0
for each row do
  if bytes >= tonumber(maxBytes) then break end
  local place, member, due, all = resolve(id, key)
  if place then
    if all then member = rare().asMember(all[1]) end
    messages[#messages + 1] = place
    messages[#messages + 1] = replied(due)
    messages[#messages + 1] = member
    messages[#messages + 1] = all and all[1].a or false
    bytes = bytes + #member
  end
  looked = looked + 1
end
return { looked, messages }
`,
  reply: (raw) => asRow(raw, { lookedUp: asNumber, messages: asDueMembers }),
});

function asDueMembers(raw: RawReply | undefined): DueMember[] {
  return asRows(raw, DUE);
}

/** The columns of a {@link DueMember}. */
export const DUE = {
  place: (raw: RawReply | undefined) => asText(raw) as DueMember["place"],
  deadline: asDeadline,
  member: asBuffer,
  address: orNothing(asBuffer),
};

/** Returns which of these business keys have a delayed or retrying message. */
export const areHeld = defineScript({
  name: "are-held",
  keys: ["timeouts"],
  args: [],
  each: ["key"],
  needs: [resolve],
  lua: /* lua */ `
local flags = {}
for each row do flags[#flags + 1] = resolve("", key) and 1 or 0 end
return flags
`,
  reply: asFlags,
});
