import { hashOf } from "../queue/message/bucket.ts";
import { ID_BYTES, packAddress } from "../queue/message/message.ts";
import type { ScheduleRecord } from "./record.ts";
import type { Rule } from "./rule.ts";

/** The key of the message of a tick: `schedule:nightly@2026-11-24T01:30:00.000Z`. */
export function occurrenceKey(name: string, tick: number, behind = ""): string {
  return `schedule:${name}@${new Date(tick).toISOString()}${behind}`;
}

/** The lane of the messages of a schedule: with `overlap: "wait"` one of its own. */
export function laneOf(name: string, { overlap, lane }: Rule): string | undefined {
  return overlap === "wait" ? `schedule:${name}` : lane;
}

/**
 * The id of the message of a tick. It is computed, so that a record need not hold it, and a tick that is planned twice
 * is stored once.
 *
 * `tick in microseconds(8) | generation(4) | hash of the name(4)`: as if it was offered at its tick, in the partition of
 * its schedule.
 */
export function occurrenceId(
  name: string,
  { generation }: Pick<ScheduleRecord, "generation">,
  tick: number,
): Buffer {
  const id = Buffer.alloc(ID_BYTES);
  id.writeBigUInt64BE(BigInt(tick) * 1000n, 0);
  id.write(generation, 8, "hex");
  id.writeUInt32BE(hashOf(name), ID_BYTES - 4);
  return id;
}

/**
 * The schedule and the tick whose planned message has this key and id (16 bytes); undefined for any other message, such as
 * one that a user has offered with a key of this form.
 */
export function plannedTick(
  key: string,
  id: Buffer,
): { readonly schedule: string; readonly tick: number } | undefined {
  const [, schedule, instant = ""] = /^schedule:(.+)@(\d{4}-\d\d-\d\dT[\d:.]+Z)$/s.exec(key) ?? [];
  const tick = Date.parse(instant);
  if (schedule === undefined || id.length !== ID_BYTES || Number.isNaN(tick)) return undefined;
  const isOurs =
    id.readBigUInt64BE(0) === BigInt(tick) * 1000n &&
    id.readUInt32BE(ID_BYTES - 4) === hashOf(schedule);
  return isOurs ? { schedule, tick } : undefined;
}

/** The address of the message of a planned tick. */
export function occurrenceAddress(
  name: string,
  record: Pick<ScheduleRecord, "generation">,
  { tick, deadline }: { readonly tick: number; readonly deadline: number },
): Buffer {
  return packAddress(deadline, occurrenceId(name, record, tick));
}
