import { hadNoEffect, noteEarlierCopy, replyOf, UnansweredError } from "../failure.ts";
import { onAbort } from "../time/abort.ts";
import type { Expiries } from "../time/expiries.ts";
import { Pause } from "../time/pause.ts";
import { networkTime } from "../time/runtime.ts";

/** The limits of the wait for a call. */
export interface CallLimit {
  /** The time limit. It is put off while the reply is on its way. */
  readonly expiries: Expiries;
  /** Ends the wait earlier. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends a command that somebody awaits. Waits until it can be sent, and sends it again while `mayRetry` allows it for
 * its error, as in a failover. It is never sent after the limit: only a reply that is under way is awaited longer.
 *
 * @param ready returns what to wait for before sending, or undefined if there is nothing.
 * @param onLate receives a reply that comes after the limit: it may hold messages.
 * @param isMoving tells whether the connection that carries the command gets on; see `Progress`.
 * @throws {UnansweredError} when the time is over or the signal is aborted.
 */
export function callWithin<Reply>(
  { expiries, signal }: CallLimit,
  ready: () => Promise<void> | undefined,
  send: () => Promise<Reply>,
  mayRetry: (error: unknown) => boolean,
  onLate: (reply: Reply) => void = () => {},
  isMoving: () => boolean = () => false,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(aborted(signal, false));
      return;
    }
    let isSent = false;
    let isOver = false;
    const finish = () => {
      isOver = true;
      expiries.remove(expiry);
      unlisten?.();
    };
    const expiry = expiries.add(
      () => {
        finish();
        reject(overdue(expiries.timeout, isSent));
      },
      () => isSent && isMoving(),
    );
    const unlisten =
      signal &&
      onAbort(signal, () => {
        finish();
        reject(aborted(signal, isSent));
      });

    const call = async (): Promise<Reply | undefined> => {
      const pending = ready();
      if (pending !== undefined) await pending;
      if (isOver) return undefined;
      isSent = true;
      return await retrying(send, mayRetry, expiry.endsAt, async () => {
        if (!isOver) await ready();
        return !isOver;
      });
    };
    call().then(
      (reply) => {
        if (isOver && isSent) onLate(reply as Reply);
        finish();
        resolve(reply as Reply);
      },
      (error: unknown) => {
        finish();
        reject(error);
      },
    );
  });
}

/** The error of a call that took longer than `timeout` milliseconds. */
export function overdue(timeout: number, wasSent: boolean): UnansweredError {
  const what = wasSent ? "Redis did not reply" : "Redis could not be reached";
  return new UnansweredError(`${what} within ${timeout} ms`, wasSent);
}

/** The error of a call that its caller aborted. */
export function aborted(signal: AbortSignal, wasSent: boolean): UnansweredError {
  return new UnansweredError("the call was aborted", wasSent, { cause: signal.reason });
}

/**
 * Sends a command, and sends it again while `mayRetry` allows it for its error, until `endsAt` (`networkTime.now()`). If
 * any attempt may have had an effect, the error says so.
 *
 * @param again resolves when the command can be sent again, to whether it is still wanted.
 */
export async function retrying<Reply>(
  send: () => Promise<Reply>,
  mayRetry: (error: unknown) => boolean,
  endsAt: number,
  again: () => Promise<boolean> = () => Promise.resolve(true),
): Promise<Reply> {
  // Made by the first failure: every call passes here.
  let pause: Pause | undefined;
  let mayBeDone = false;
  for (;;) {
    const sentAt = networkTime.now();
    try {
      return await send();
    } catch (error) {
      if (mayBeDone) noteEarlierCopy(error);
      mayBeDone ||= !hadNoEffect(error);
      if (!mayRetry(error)) throw error;
      // Reject before the time is over: Redis's reply says more than a timeout. A Cluster client may need a while to
      // find out that no node serves a slot, and the next time twice as long.
      const now = networkTime.now();
      const next = LONGEST_PAUSE + (replyOf(error) === undefined ? 0 : 2 * (now - sentAt));
      if (now + next > endsAt) throw error;
      pause ??= new Pause(50, LONGEST_PAUSE);
      await pause.wait();
      // The error of `again` is of no use: only this one says whether Redis may have carried out the command.
      if (!(await again().catch(() => false))) throw error;
    }
  }
}

/** Milliseconds. */
const LONGEST_PAUSE = 500;
