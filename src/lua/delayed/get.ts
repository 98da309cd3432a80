import { delayedWith } from "../fragments/delayed/delayed-with.ts";
import { locate } from "../fragments/delayed/locate.ts";
import { asDeadline, replied } from "../fragments/message/replied.ts";
import { asBuffer, asRow, asRows, orNothing, type RawReply } from "../reply.ts";
import { defineScript } from "../script.ts";

/** A delayed message as scripts return it. */
export interface DelayedMember {
  readonly deadline: number;
  readonly member: Buffer;
}

const COLUMNS = { deadline: asDeadline, member: asBuffer };

/** Reads a list of deadlines, each followed by its member. */
export function asMembers(raw: RawReply | undefined): DelayedMember[] {
  return asRows(raw, COLUMNS);
}

const defineGet = (name: string, resolve: "locate" | "delayedWith") =>
  defineScript({
    name,
    keys: ["timeouts", "businessKeys"],
    args: ["wanted"],
    needs: [replied, { locate, delayedWith }[resolve]],
    lua: /* lua */ `
local member, deadline = ${resolve}(wanted)
return member and { replied(deadline), member } or false
`,
    reply: orNothing((raw): DelayedMember => asRow(raw, COLUMNS)),
  });

/** Returns the delayed message with this address, if there is one. O(log N). */
export const getById = defineGet("get-by-id", "locate");

/** Returns the delayed message with this business key, if there is one. O(log N). */
export const getByKey = defineGet("get-by-key", "delayedWith");
