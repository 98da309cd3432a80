import { ClosedError } from "../../errors.ts";
import type { WaitOptions } from "../../run/waiters.ts";
import { queueTime } from "../../time/runtime.ts";

/** The limits of the wait for a batch. */
export interface BatchWait extends WaitOptions {
  /** How long the batch waits from its first message on to fill up (ms). With 0 it has what is there. */
  readonly wait: number;
}

/** Where the messages of a batch come from. */
export interface BatchSource<One> {
  /** Waits for up to `max` messages; none if none came in time. */
  take(max: number, options: WaitOptions): Promise<readonly One[]>;
  /** How many more messages the batch has room for. */
  roomIn(batch: readonly One[]): number;
  /** Gives back the messages of a batch that is not handed out. Never rejects; the batch ends when it resolves. */
  giveBack(batch: readonly One[]): Promise<unknown> | void;
  /** Whether a source that closes lets the batch be handed out as it is. Otherwise it is given back. */
  readonly endsWhole: boolean;
}

/**
 * Takes a batch: waits for its first messages, and from then on up to `wait` milliseconds for more. Returns none if the first
 * did not come in time.
 *
 * If Redis refuses to give more, the batch has what there is; the next take meets the refusal.
 *
 * @throws the signal's reason, if it is aborted: then all messages are given back.
 */
export async function takeBatch<One>(
  limit: number,
  { wait, signal, timeout }: BatchWait,
  source: BatchSource<One>,
): Promise<readonly One[]> {
  const first = await source.take(limit, { signal, timeout });
  if (wait === 0 || first.length === 0) return first;
  const batch = [...first];
  const endsAt = queueTime.now() + wait;
  try {
    for (;;) {
      const [room, left] = [source.roomIn(batch), endsAt - queueTime.now()];
      if (room <= 0 || left <= 0) return batch;
      for (const one of await source.take(room, { signal, timeout: left })) batch.push(one);
    }
  } catch (error) {
    const mustEnd = signal?.aborted === true || (error instanceof ClosedError && !source.endsWhole);
    if (!mustEnd) return batch;
    await source.giveBack(batch);
    throw error;
  }
}
