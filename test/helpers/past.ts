import type { Redis } from "ioredis";
import { DAYS, MINUTES, NOTED, type Noted } from "../../src/lua/queue/history.ts";
import { queueKeys } from "../../src/queue/keys.ts";

type Numbers = Readonly<Partial<Record<Noted, number>>>;

/** The byte of a value, as the script `note-history` makes it. */
function level(value: number | undefined): number {
  if (value === undefined) return 0;
  if (value < 16) return Math.floor(value) + 1;
  return Math.min(255, 17 + Math.floor(Math.log(value / 16) / Math.log(1.08) + 0.5));
}

/** Gives a queue a past: a day in minutes and 90 days, as if a dashboard had noted what `numbers` returns for each age (0 to 1). */
export async function seedPast(
  redis: Redis,
  name: string,
  numbers: (age: number) => Numbers,
): Promise<void> {
  const now = Date.now();
  const fields = new Map<string, Buffer>();
  for (const [slots, count] of [
    [MINUTES, 1440],
    [DAYS, 90],
  ] as const) {
    const { step, inField, fieldCount, prefix } = slots;
    const last = Math.floor(now / step);
    for (let at = last - count + 1; at <= last; at++) {
      const number = Math.floor(at / inField);
      const field = `${prefix}${number % fieldCount}`;
      let bytes = fields.get(field);
      if (bytes?.readUInt32BE(0) !== number) {
        bytes = Buffer.alloc(4 + inField * NOTED.length);
        bytes.writeUInt32BE(number);
        fields.set(field, bytes);
      }
      const values = numbers((last - at) / count);
      for (const [i, noted] of NOTED.entries()) {
        bytes[4 + (at % inField) * NOTED.length + i] = level(values[noted]);
      }
    }
  }
  const minute = Math.floor(now / MINUTES.step);
  fields.set("last", Buffer.from(`${minute - 131_040} ${minute}  0`));
  await redis.hset(queueKeys(name).history, fields);
}
