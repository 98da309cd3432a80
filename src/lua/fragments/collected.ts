import { defineFragment } from "../fragment.ts";
import { fieldAt } from "./trailer.ts";

/** Lua unpacks no more than 8,000 values. */
const CHUNK = 5000;

/** `collectedIn(trailer)`: the field with the collected payloads, or an empty string; see `collected.ts` in `queue/message/`. */
export const collectedIn = defineFragment({
  needs: [fieldAt],
  lua: /* lua */ `
local function collectedIn(trailer)
  if trailer:byte(1) ~= 255 or trailer:byte(2) ~= 1 then return "" end
  local at = 3
  while at <= #trailer do
    local tag, last = fieldAt(trailer, at)
    if not tag then break end
    if tag == 11 and last >= at + 12 then return trailer:sub(at + 5, last) end
    at = last + 1
  end
  return ""
end
`,
});

/**
 * `payloadsOf(payload, trailer)`: what a message is in the ready LIST: its payload or, if it has collected others before,
 * a table of all, in the order of their offers.
 * `chunksOf(messages)`: such messages, as tables of payloads that one command takes each.
 */
export const payloadsOf = defineFragment({
  needs: [collectedIn],
  lua: /* lua */ `
local function payloadsOf(payload, trailer)
  local block, payloads, at = collectedIn(trailer), {}, 9
  while at + 20 <= #block do
    local from = at + 21
    at = from + struct.unpack("<I4", block, at + 17)
    payloads[#payloads + 1] = block:sub(from, at - 1)
  end
  if at ~= #block + 1 or #payloads == 0 then return payload end
  payloads[#payloads + 1] = payload
  return payloads
end
local function chunksOf(messages)
  local chunks = {}
  for _, message in ipairs(messages) do
    for _, payload in ipairs(type(message) == "table" and message or { message }) do
      local last = chunks[#chunks]
      if last and #last < ${CHUNK} then last[#last + 1] = payload else chunks[#chunks + 1] = { payload } end
    end
  end
  return chunks
end
`,
});
