import { expect, test } from "vitest";
import { formatMember, parseMember, takeOf } from "../../../src/partitions/parts/member.ts";

const name = "6f1c0d0e-0000-4000-8000-000000000000";

test.each([
  [{}, `:${name}:`],
  [{ moves: true }, `m:${name}:`],
  [{ moves: true, isExclusive: true }, `mx:${name}:`],
  [{ moves: true, isChanging: true }, `mc:${name}:`],
  [{ isReleasing: true }, `r:${name}:`],
  [{ takes: [takeOf("mail"), takeOf()] }, `:${name}:group%20mail,list`],
  [{ takes: [takeOf("a,b:c %")] }, `:${name}:group%20a%2Cb%3Ac%20%25`],
])("%j is written as %s", (roles, text) => {
  expect(formatMember({ name, roles })).toBe(text);
  const { takes = [], ...flags } = roles as { readonly takes?: string[] };
  expect(parseMember(text, 7)).toMatchObject({ name, idle: 7, roles: flags });
  expect(parseMember(text, 7)?.roles.takes).toEqual(takes.toSorted());
});

test.each(["", "m", `z:${name}:`, `m:${name}`, `m:${name}:%`, "m::"])("%j is no member", (text) => {
  expect(parseMember(text, 0)).toBeUndefined();
});
