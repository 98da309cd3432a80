import { delayedWith } from "../fragments/delayed-with.ts";
import { locate } from "../fragments/locate.ts";
import { asDeadline, replied } from "../fragments/replied.ts";
import { asArray, asBuffer, asNumber, defineScript, type RawReply } from "../script.ts";
import type { PageMessage } from "./read.ts";

const defineGet = (name: string, resolve: "locate" | "delayedWith") =>
  defineScript({
    name,
    keys: ["timeouts", "index"],
    args: ["wanted"],
    needs: [replied, { locate, delayedWith }[resolve]],
    lua: /* lua */ `
local member, deadline = ${resolve}(wanted)
return member and { replied(deadline), member } or false
`,
    reply: (raw: RawReply): PageMessage | undefined => {
      if (raw === null) return undefined;
      const [deadline, member] = asArray(raw);
      return { deadline: asDeadline(deadline), member: asBuffer(member) };
    },
  });

/** The delayed message with this address, if it is there. O(log N). */
export const getById = defineGet("get-by-id", "locate");

/** The delayed message with this business key, if there is one. O(log N). */
export const getByKey = defineGet("get-by-key", "delayedWith");

/** Which of these keys are those of delayed messages. */
export const areDelayed = defineScript({
  name: "are-delayed",
  keys: ["timeouts", "index"],
  args: [],
  each: ["key"],
  needs: [delayedWith],
  lua: /* lua */ `
local delayed = {}
for each row do delayed[#delayed + 1] = delayedWith(key) and 1 or 0 end
return delayed
`,
  reply: (raw) => asArray(raw).map((flag) => asNumber(flag) === 1),
});
