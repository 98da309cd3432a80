import { unpackMember } from "../../queue/message/message.ts";
import { ServerClock } from "../../time/server-clock.ts";
import type { PartReport } from "./part-report.ts";

/** A message that was moved before it was due. */
export interface EarlyMove {
  readonly part: PartReport;
  /** By how many milliseconds, at least. */
  readonly ahead: number;
}

/**
 * Watches whether messages become ready before they are due, as a Redisson moves them whose clock is ahead. The library
 * itself moves by the server's clock only.
 *
 * It remembers a few delayed messages. One that is delayed no more though its deadline is to come was cancelled,
 * rescheduled, or moved; only if its payload is ready now was it moved. One that was taken at once is not seen.
 */
export class EarlyWatch {
  readonly #part: PartReport;
  readonly #watched: readonly Watched[];

  private constructor(part: PartReport, watched: readonly Watched[]) {
    this.#part = part;
    this.#watched = watched;
  }

  /** Remembers a few messages that are not due for a while. */
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
      const payload = unpackMember(member)?.payload;
      // Of a payload that is ready already nobody can tell later where it came from.
      if (payload === undefined || ready.some((one) => one.equals(payload))) continue;
      watched.push({ member, payload, deadline: Number(String(replies[i + 1])) });
    }
    return new EarlyWatch(part, watched);
  }

  get isEmpty(): boolean {
    return this.#watched.length === 0;
  }

  /** The message that was moved earliest of all; undefined if none was. */
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
    const leads = gone
      .filter(({ payload }) => ready.some((one) => one.equals(payload)))
      .map(({ deadline }) => deadline - now);
    const ahead = Math.max(...leads);
    return ahead > 0 ? { part: this.#part, ahead } : undefined;
  }
}

interface Watched {
  readonly member: Buffer;
  readonly payload: Buffer;
  readonly deadline: number;
}

/** The payloads that became ready last, in the LIST or the stream. */
async function readReady({ keys, site }: PartReport): Promise<Buffer[]> {
  const listed = await site.ask((redis) => redis.lrangeBuffer(keys.ready, -LAST, -1));
  const entries = await site.ask((redis) =>
    redis.xrevrangeBuffer(keys.stream, "+", "-", "COUNT", LAST),
  );
  const streamed = entries.flatMap(([, fields]) => {
    const at = fields.findIndex((field, i) => i % 2 === 0 && String(field) === "p");
    return at === -1 ? [] : [fields[at + 1] as Buffer];
  });
  return [...listed, ...streamed];
}

async function askTime({ keys, site }: PartReport): Promise<number> {
  // Of the node that the queue is on; its name leads there on a Cluster.
  const reply = await site.ask((redis) => redis.eval(NOW, 1, keys.timeouts));
  return ServerClock.fromTime(reply as [string, string]);
}

const NOW = `local timeouts = KEYS[1]\nreturn redis.call("TIME")`;

/** Milliseconds: longer than the watch lasts. */
const MARGIN = 3000;

const FEW = 5;

const LAST = 20;
