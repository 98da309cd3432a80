import { defineFragment } from "../../fragment.ts";

/**
 * `timeoutIn(name)`: the visibility timeout (milliseconds) in a consumer's name; nil for a foreign name.
 * `maxDeliveriesIn(name)`: the most deliveries of a message, as the name says; nil for a foreign name, and for one
 * without this number, which older releases made. See `consumer-name.ts` in `reliable/group/`.
 */
export const consumerName = defineFragment({
  lua: /* lua */ `
local function timeoutIn(name)
  return tonumber(name:match("^delayline:(%d+):"))
end
local function maxDeliveriesIn(name)
  return tonumber(name:match("^delayline:%d+:([1-9]%d*):"))
end
`,
});
