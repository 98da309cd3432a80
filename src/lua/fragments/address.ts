import { defineFragment } from "../fragment.ts";

/** `wholeAt(bytes, from)`: the whole number in eight big-endian bytes. */
export const wholeAt = defineFragment({
  lua: /* lua */ `
local function wholeAt(bytes, from)
  local high, low = struct.unpack(">I4I4", bytes, from)
  return high * 4294967296 + low
end
`,
});

/**
 * Compares bytes as numbers. Lua's `<` on strings uses strcoll(3), and Redis takes the collation from its environment.
 *
 * `compareBytes(a, i, b, j, count)`: negative, 0 or positive, as `count` bytes of `a` from `i` on sort before, equal to
 * or after those of `b` from `j` on. `count` has to be a multiple of 4.
 */
export const compareBytes = defineFragment({
  lua: /* lua */ `
local function compareBytes(a, i, b, j, count)
  for k = 0, count - 4, 4 do
    local x, y = struct.unpack(">I4", a, i + k), struct.unpack(">I4", b, j + k)
    if x ~= y then return x - y end
  end
  return 0
end
`,
});

/**
 * Elements of the insertion-order LIST. Delayline writes addresses, deadline(8) | id(16), both big-endian. Java clients
 * write whole members, and so does Delayline with `interop: "redisson"`.
 *
 * `isAddress(element)`: whether an element is an address rather than a member. The deadline in an address begins with a
 * zero byte, since it is below 2^56, and so does the order stamp of the id. A member begins with the length of its id,
 * which is not 0. A member written by Redisson before 3.21.1 may begin with any byte, but if it has 24 bytes, its ninth
 * byte is 8.
 */
export const isAddress = defineFragment({
  lua: /* lua */ `
local function isAddress(element)
  return #element == 24 and element:byte(1) == 0 and element:byte(9) == 0
end
`,
});

/**
 * `deadlineOf(address)`: the deadline in an address, or the score if that is not a legal deadline; see `packAddress` in
 * `message.ts`.
 */
export const deadlineOf = defineFragment({
  lua: /* lua */ `
local function deadlineOf(address)
  if address:byte(1) > 0 then return (struct.unpack(">d", address)) end
  local high, low = struct.unpack(">I4I4", address)
  return high * 4294967296 + low
end
`,
});

/**
 * `addressOf(score, id)`: the address of a message with any score, and an id of any length; see `packAddress` in
 * `message.ts`.
 */
export const addressOf = defineFragment({
  lua: /* lua */ `
local function addressOf(score, id)
  if score % 1 ~= 0 or score < 0 or score > 9007199254740991 then return struct.pack(">d", score) .. id end
  return struct.pack(">I4I4", math.floor(score / 4294967296), score % 4294967296) .. id
end
`,
});

/**
 * `packAddress(deadline, member)`: the address of a member with an id of 16 bytes and a legal deadline; see
 * `packAddress` in `message.ts`.
 */
export const packAddress = defineFragment({
  lua: /* lua */ `
local function packAddress(deadline, member)
  return struct.pack(">I4I4", math.floor(deadline / 4294967296), deadline % 4294967296) .. member:sub(2, 17)
end
`,
});

/** `idOf(address)`: the id of a message, which follows the deadline in its address; see `packAddress` in `message.ts`. */
export const idOf = defineFragment({
  lua: /* lua */ `
local function idOf(address)
  return address:sub(9)
end
`,
});
