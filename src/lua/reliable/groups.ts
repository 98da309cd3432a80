import { groupNames } from "../fragments/stream/group-names.ts";
import { asArray, asBuffer } from "../reply.ts";
import { defineScript } from "../script.ts";

/** The names of the consumer groups of a stream; none where there is no stream. */
export const groups = defineScript({
  name: "groups",
  keys: ["stream"],
  args: [],
  needs: [groupNames],
  lua: /* lua */ `return groupNames()`,
  reply: (raw) => asArray(raw).map((name) => asBuffer(name).toString()),
});
