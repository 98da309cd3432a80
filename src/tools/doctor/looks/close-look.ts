import { ids } from "../../../inside.ts";
import type { PartReport } from "./part-report.ts";

/** A sample of the index of business keys, and how many of its entries point to no message. */
export interface IndexReport {
  readonly sampleCount: number;
  readonly deadCount: number;
  /** The future deadlines (epoch ms) of dead entries: their messages left the queue before they were due. */
  readonly earlyDeadlines: readonly number[];
}

/**
 * Looks up at most 500 entries. `now` is the server's time (epoch ms).
 *
 * Asks this part alone. A look-up in the whole queue would migrate the message that it finds, while the number of
 * partitions changes.
 */
export async function sampleIndex(
  { name, keys, site }: PartReport,
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
  const held = new Set(await site.held(name, [...sample.keys()]));
  const dead: Buffer[] = [];
  for (const [key, entry] of sample) {
    if (held.has(key)) continue;
    // Its message may just have become ready, or have been replaced.
    const again = await site.ask((redis) => redis.hgetBuffer(businessKeys, key));
    if (again !== null && entry.equals(again)) dead.push(entry);
  }
  const deadlines = dead
    .filter((entry) => entry.length >= ids.ADDRESS_BYTES)
    .map((entry) => Number(entry.readBigUInt64BE(0)));
  return {
    sampleCount: sample.size,
    deadCount: dead.length,
    earlyDeadlines: deadlines.filter((deadline) => deadline > now && deadline < LATEST),
  };
}

/** Fields per HSCAN. */
const PAGE = 100;

/** Entries in a sample. */
const MOST = 500;

/** HSCAN calls per sample. HSCAN returns a small hash as a whole, and may return empty pages. */
const STEPS = 20;

/** Any larger number is not a deadline but foreign bytes. */
const LATEST = 9e15;

/** A message that was moved before it was due. */
export interface EarlyMove {
  readonly part: PartReport;
  /** How many milliseconds early it was, at least. */
  readonly ahead: number;
}

/**
 * Watches for messages that become ready before they are due. A Redisson whose clock is ahead moves them early; this
 * library moves messages by the server's clock alone.
 *
 * The watch remembers a few delayed messages. If one disappears before its deadline, it was cancelled, rescheduled or
 * moved. Only if its payload is now ready was it moved. The watch misses a message that was taken at once.
 */
export class EarlyWatch {
  readonly #part: PartReport;
  readonly #watched: readonly Watched[];

  private constructor(part: PartReport, watched: readonly Watched[]) {
    this.#part = part;
    this.#watched = watched;
  }

  /** Remembers a few messages that will not fall due during the watch. */
  static async begin(part: PartReport): Promise<EarlyWatch> {
    const { keys, site } = part;
    const now = await askTime(part);
    const from = Math.ceil(now + MARGIN);
    const replies = await site.ask((redis) =>
      redis.zrangebyscoreBuffer(keys.timeouts, from, "+inf", "WITHSCORES", "LIMIT", 0, FEW),
    );
    const ready = await readReady(part);
    const watched: Watched[] = [];
    for (let i = 0; i < replies.length; i += 2) {
      const member = replies[i] as Buffer;
      const payload = ids.unpackMember(member)?.payload;
      // If the same payload is already ready, its origin cannot be determined later.
      if (payload === undefined || ready.some((one) => one.equals(payload))) continue;
      watched.push({ member, payload, deadline: Number(String(replies[i + 1])) });
    }
    return new EarlyWatch(part, watched);
  }

  get isEmpty(): boolean {
    return this.#watched.length === 0;
  }

  /** The message that was moved furthest ahead of its deadline; undefined if none was. */
  async end(): Promise<EarlyMove | undefined> {
    const { keys, site } = this.#part;
    const gone: Watched[] = [];
    for (const one of this.#watched) {
      const score = await site.ask((redis) => redis.zscore(keys.timeouts, one.member));
      if (score === null) gone.push(one);
    }
    if (gone.length === 0) return undefined;
    const ready = await readReady(this.#part);
    const now = await askTime(this.#part);
    const aheads = gone
      .filter(({ payload }) => ready.some((one) => one.equals(payload)))
      .map(({ deadline }) => deadline - now);
    const ahead = Math.max(...aheads);
    return ahead > 0 ? { part: this.#part, ahead } : undefined;
  }
}

interface Watched {
  readonly member: Buffer;
  readonly payload: Buffer;
  readonly deadline: number;
}

/** The payloads that became ready last, in the LIST and in the stream. */
async function readReady({ keys, site }: PartReport): Promise<Buffer[]> {
  const inList = await site.ask((redis) => redis.lrangeBuffer(keys.ready, -LAST, -1));
  const entries = await site.ask((redis) =>
    redis.xrevrangeBuffer(keys.stream, "+", "-", "COUNT", LAST),
  );
  const inStream = entries.flatMap(([, fields]) => {
    const at = fields.findIndex((field, i) => i % 2 === 0 && String(field) === "p");
    return at === -1 ? [] : [fields[at + 1] as Buffer];
  });
  return [...inList, ...inStream];
}

function askTime({ keys, site }: PartReport): Promise<number> {
  return site.time(keys);
}

/** Milliseconds; longer than the watch lasts. */
const MARGIN = 3000;

/** Messages to remember. */
const FEW = 5;

/** Ready payloads to compare. */
const LAST = 20;
