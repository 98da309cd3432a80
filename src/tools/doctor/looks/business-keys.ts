import type { InspectedQueue } from "../../inspect/inspector.ts";
import { ADDRESS_BYTES } from "../../../queue/message/message.ts";
import type { PartReport } from "./part-report.ts";

/** A sample of the index of business keys, and how many of its entries point to no message. */
export interface IndexReport {
  readonly sampleCount: number;
  readonly deadCount: number;
  /** The future deadlines (epoch ms) of dead entries: their messages left the queue before they were due. */
  readonly earlyDeadlines: readonly number[];
}

/** Looks up at most 500 entries. `now` is the server's time (epoch ms). */
export async function sampleIndex(
  { keys, site }: PartReport,
  { messages }: Pick<InspectedQueue, "messages">,
  now: number,
): Promise<IndexReport> {
  const { businessKeys } = keys;
  const sample = new Map<string, Buffer>();
  let cursor = "0";
  for (let step = 0; step < STEPS && sample.size < MOST; step++) {
    const [next, fields] = await site.ask((redis) =>
      redis.hscanBuffer(businessKeys, cursor, "COUNT", PAGE),
    );
    for (let i = 0; i < fields.length; i += 2) {
      const [key, entry] = [fields[i], fields[i + 1]] as [Buffer, Buffer];
      if (sample.size < MOST) sample.set(key.toString(), entry);
    }
    cursor = next.toString();
    if (cursor === "0") break;
  }
  const dead: Buffer[] = [];
  for (const [key, entry] of sample) {
    if (await hasMessage(messages, key)) continue;
    // Its message may just have become ready, or have been replaced.
    const again = await site.ask((redis) => redis.hgetBuffer(businessKeys, key));
    if (again !== null && entry.equals(again)) dead.push(entry);
  }
  const deadlines = dead
    .filter((entry) => entry.length >= ADDRESS_BYTES)
    .map((entry) => Number(entry.readBigUInt64BE(0)));
  return {
    sampleCount: sample.size,
    deadCount: dead.length,
    earlyDeadlines: deadlines.filter((deadline) => deadline > now && deadline < LATEST),
  };
}

async function hasMessage(messages: InspectedQueue["messages"], key: string): Promise<boolean> {
  try {
    return await messages.has(key);
  } catch (error) {
    // Other programs can write here: an invalid key belongs to no message.
    if (error instanceof TypeError || error instanceof RangeError) return false;
    throw error;
  }
}

/** Fields per HSCAN. */
const PAGE = 100;

/** Entries in a sample. */
const MOST = 500;

/** HSCAN calls per sample. HSCAN returns a small hash as a whole, and may return empty pages. */
const STEPS = 20;

/** Any larger number is not a deadline but foreign bytes. */
const LATEST = 9e15;
