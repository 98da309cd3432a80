import { delayedWith } from "../fragments/delayed/delayed-with.ts";
import { locate } from "../fragments/delayed/locate.ts";
import { asDeadline, replied } from "../fragments/message/replied.ts";
import { asArray, asBuffer, defineScript, type RawReply } from "../script.ts";

/** A delayed message as scripts return it. */
export interface DelayedMember {
  readonly deadline: number;
  readonly member: Buffer;
}

/** Reads a list of deadlines, each followed by its member. */
export function asMembers(raw: RawReply | undefined): DelayedMember[] {
  const words = asArray(raw);
  const members: DelayedMember[] = [];
  for (let i = 0; i < words.length; i += 2) {
    members.push({ deadline: asDeadline(words[i]), member: asBuffer(words[i + 1]) });
  }
  return members;
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
    reply: (raw: RawReply): DelayedMember | undefined => {
      if (raw === null) return undefined;
      const [deadline, member] = asArray(raw);
      return { deadline: asDeadline(deadline), member: asBuffer(member) };
    },
  });

/** The delayed message with this address, if it is there. O(log N). */
export const getById = defineGet("get-by-id", "locate");

/** The delayed message with this business key, if there is one. O(log N). */
export const getByKey = defineGet("get-by-key", "delayedWith");
