import { expect, test } from "vitest";
import type { Entry } from "../../../src/lua/places/stream.ts";
import { HeldDeliveries, type Origin } from "../../../src/reliable/group/held.ts";
import { Suspects } from "../../../src/reliable/group/suspects.ts";

const entryOf = (entryId: string, isOrphan: boolean): Entry => ({
  entryId,
  address: Buffer.alloc(24),
  payload: Buffer.alloc(1),
  trailer: Buffer.alloc(0),
  attempts: 2,
  group: "g",
  isOrphan,
  heldBackUntil: undefined,
  hasSlot: false,
});

function newSuspects(isOnly: boolean) {
  const held = new HeldDeliveries({} as Origin, () => {});
  const other = held.add(entryOf("1-0", false));
  const suspect = held.add(entryOf("2-0", true));
  return { suspects: new Suspects(held, isOnly), other, suspect };
}

test("a suspect waits until nothing else is held", () => {
  const { suspects, other, suspect } = newSuspects(false);
  expect(suspects.sift([suspect])).toEqual({ fresh: [], surplus: [] });
  expect(suspects.mustRest).toBe(true);
  other.lose();
  expect(suspects.mustRest).toBe(false);
  expect(suspects.handOut()).toBe(suspect);
});

test("the only consumer of a partition rests for no suspect: others may be aside for long", () => {
  const { suspects, suspect } = newSuspects(true);
  expect(suspects.sift([suspect])).toEqual({ fresh: [suspect], surplus: [] });
  expect(suspects.mustRest).toBe(false);
  expect(suspects.readLimit).toBe(Infinity);
});
