import { groupNames } from "../fragments/stream/group-names.ts";
import { asArray, asBuffer } from "../reply.ts";
import { defineScript } from "../script.ts";

/** Returns the names of a stream's consumer groups; none without a stream. */
export const groups = defineScript({
  name: "groups",
  keys: ["stream"],
  args: [],
  needs: [groupNames],
  lua: /* lua */ `return groupNames()`,
  reply: (raw) => asArray(raw).map((name) => asBuffer(name).toString()),
});
