import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster } from "ioredis";
import { bucketOfKey } from "../../../src/queue/message/bucket.ts";
import { tableOf } from "../../../src/partitions/ring/ring.ts";
import { newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import type { OwnServer } from "../../helpers/own-server.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { Offering } from "../offering.ts";

/** How many partitions there are. */
export const PARTITIONS = 6;

/** Milliseconds between two offers: a hundred a second. */
const INTERVAL = 10;

/** Milliseconds until a message is due. */
const DELAY = 100;

/** Milliseconds after a master's death in which its replies may still arrive: the machine is busy. */
const HEARD = 1000;

/** When a master died, and until when its replica is known to have had everything. */
export interface Death {
  readonly replicatedAt: number;
  readonly diedAt: number;
}

/**
 * A producer and a consumer of a queue in partitions, and the result of each message. Instants are from
 * `performance.now()`.
 */
export class ClusterTraffic extends Offering {
  readonly name = uniqueName("partitions");
  readonly kind: "plain" | "reliable";
  /** The consumer. */
  readonly line: TestLine;
  readonly receivedAt = new Map<number, number[]>();

  /** Begins at once; ends with the test. */
  constructor(redis: Cluster, kind: "plain" | "reliable", callTimeout = 60_000) {
    super();
    this.kind = kind;
    this.line = newLineThatMayFail({ redis });
    const options = { partitions: PARTITIONS };
    const receive = (n: number) => {
      this.receivedAt.set(n, [...(this.receivedAt.get(n) ?? []), performance.now()]);
    };
    if (kind === "plain") this.line.getBlockingQueue<number>(this.name, options).subscribe(receive);
    else
      this.line.getReliableQueue<number>(this.name, options).subscribe(receive, { concurrency: 8 });
    // Only the consumer moves plain messages.
    const producer = newLineThatMayFail({ redis, transfer: false, callTimeout });
    const queue =
      kind === "plain"
        ? producer.getDelayedQueue<number>(this.name, options)
        : producer.getReliableQueue<number>(this.name, options);
    if (kind === "plain") this.line.getDelayedQueue(this.name, options);
    this.begin((n) => queue.offer(n, DELAY, { key: String(n) }), INTERVAL);
  }

  /** The partition that a message goes to. */
  partitionOf(n: number): number {
    return tableOf(PARTITIONS)[bucketOfKey(String(n))] as number;
  }

  /** Resolves when some messages have arrived. */
  async isFlowing(): Promise<void> {
    await eventually(() => this.receivedAt.size >= 100, { within: 30_000 });
  }

  /** The partitions that a server has. */
  async partitionsOn({ port }: OwnServer): Promise<number[]> {
    const all = await this.line.partitions(this.name);
    return all.flatMap(({ partition, node }) => (node === `127.0.0.1:${port}` ? [partition] : []));
  }

  /** Stops offering, and waits until every offer is settled and nothing has arrived for a second. */
  async end(): Promise<void> {
    await this.settled();
    let count = -1;
    while (count < this.receivedAt.size) {
      count = this.receivedAt.size;
      // Twice as long while something is missing: it may be lost, or the machine stands still.
      await sleep(this.lost().length === 0 ? 1000 : 2000);
    }
  }

  /** Milliseconds from `at` until a partition delivers a message that was offered after `at`. */
  untilDelivered(partition: number, at: number): number {
    const times = [...this.receivedAt]
      .filter(([n]) => this.partitionOf(n) === partition && (this.offeredAt.get(n) ?? 0) > at)
      .map(([, [first]]) => first as number);
    return Math.min(...times) - at;
  }

  /** Lateness in milliseconds of a partition's messages that were due between two instants; ascending. */
  lateness(partition: number, from: number, to: number): number[] {
    return [...this.acknowledgedAt.keys()]
      .filter((n) => this.partitionOf(n) === partition)
      .map(
        (n) => [this.receivedAt.get(n)?.[0] ?? NaN, (this.offeredAt.get(n) ?? 0) + DELAY] as const,
      )
      .filter(([, due]) => from < due && due < to)
      .map(([received, due]) => received - due)
      .toSorted((a, b) => a - b);
  }

  /** Messages that were acknowledged but did not arrive, except those that a dead master may not have replicated. */
  lost(death?: Death): number[] {
    return [...this.acknowledgedAt]
      .filter(([n, at]) => !this.receivedAt.has(n) && !isUnsure(at, death))
      .map(([n]) => n);
  }

  /** Messages that arrived twice, with the same exception. */
  twice(death?: Death): number[] {
    return [...this.receivedAt]
      .filter(([, [first, second]]) => second !== undefined && !isUnsure(first as number, death))
      .map(([n]) => n);
  }
}

function isUnsure(at: number, death: Death | undefined): boolean {
  return death !== undefined && death.replicatedAt < at && at < death.diedAt + HEARD;
}
