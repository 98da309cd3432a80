import { ADDRESS_BYTES } from "../../queue/message/message.ts";
import type { InspectedQueue } from "../../inspect/inspector.ts";
import type { PartReport } from "./part-report.ts";

/** Some entries of the index of business keys, and those that lead nowhere. */
export interface IndexReport {
  readonly sampleCount: number;
  readonly deadCount: number;
  /** Of these, the deadlines that are to come (epoch ms): the message left before it was due. */
  readonly earlyDeadlines: readonly number[];
}

/** Looks some entries up, 500 at most. `now` is the server's clock (epoch ms). */
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
    if (await leads(messages, key)) continue;
    // It may have become ready meanwhile, or be another message by now.
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

async function leads(messages: InspectedQueue["messages"], key: string): Promise<boolean> {
  try {
    return await messages.has(key);
  } catch (error) {
    // Others write there, too: what is no legal key is the key of no message.
    if (error instanceof TypeError || error instanceof RangeError) return false;
    throw error;
  }
}

const PAGE = 100;

const MOST = 500;

/** A small hash is sent as a whole, and an empty page may come in between. */
const STEPS = 20;

/** A deadline is below this; other bytes are none. */
const LATEST = 9e15;
