import { makePlain as makePlainStep } from "../lua/queue/make-plain.ts";
import type { Call } from "../queue/call.ts";
import { limitsLanes, readFlow } from "../queue/flow.ts";
import type { Queue } from "../queue/queue.ts";

/** The outcome of `makePlain`. */
// An alias, not an interface: users cannot name it, so their declarations write it out.
export type PlainResult = {
  /** Whether the queue is plain now. If not, `consumers` and `ready` say what prevents it. */
  readonly isPlain: boolean;
  /** How many consumers of the stream are alive; with partitions, the highest number of any partition. */
  readonly consumers: number;
  /** How many messages are still in the stream. */
  readonly ready: number;
  /** How many ready messages and retries were moved. */
  readonly moved: number;
};

/**
 * Makes a reliable queue plain, in bounded steps; stops early if consumers are alive or the stream is too long.
 *
 * @throws {TypeError} if this client has opened the queue as a reliable one, or its flow has a concurrency.
 */
export async function makePlain(queue: Queue, call?: Call): Promise<PlainResult> {
  queue.checkOpen();
  if (queue.makesStream) {
    throw new TypeError(`queue "${queue.name}" is open as a reliable one in this client`);
  }
  const flow = await readFlow(queue, call);
  const { concurrency } = flow ?? {};
  if (concurrency !== undefined || (flow !== undefined && limitsLanes(flow, "concurrency"))) {
    throw new TypeError(
      `queue "${queue.name}" limits what is in hand, which no plain queue can: set a flow without concurrency first`,
    );
  }
  const { channel } = queue.keys;
  const args = { channel, limit: STEP, timeout: FOREIGN_TIMEOUT };
  let moved = 0;
  for (;;) {
    const reply = await queue.change("make plain", makePlainStep, args, call);
    moved += reply.moved;
    const { isPlain, consumers, ready, retrying } = reply;
    if (isPlain || consumers > 0 || (retrying === 0 && ready > STEP)) {
      return { isPlain, consumers, ready, moved };
    }
  }
}

/** Messages per step: a millisecond or two of Redis's time. */
const STEP = 1000;

/** Milliseconds of silence after which a consumer counts as dead whose name does not say how long it may be silent. */
const FOREIGN_TIMEOUT = 30_000;
