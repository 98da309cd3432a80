import { Command } from "ioredis";
import { expect, test } from "vitest";
import { crc16, slotOfTag } from "../../../src/queue/slot.ts";

test.each([
  ["", 0],
  ["123456789", 0x31c3],
])("the checksum of %j is %d", (text, checksum) => {
  expect(crc16(text)).toBe(checksum);
});

test("a checksum can be taken in two parts", () => {
  expect(crc16("6789", crc16("12345"))).toBe(0x31c3);
});

test.each(["foo", "orders/3/72", "é😀"])("slot of %j: as ioredis computes it", (tag) => {
  expect(slotOfTag(tag)).toBe(new Command("get", [`a:{${tag}}:b`]).getSlot());
});
