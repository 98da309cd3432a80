import { UnansweredError } from "../failure.ts";
import type { Expiries } from "../time/expiries.ts";
import { Pause } from "../time/pause.ts";

/** How long somebody waits for a call. */
export interface CallLimit {
  /** When the time is over. */
  readonly expiries: Expiries;
  /** Ends the wait earlier; the call then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends a command that somebody awaits: waits until `ready` says that it can be sent, sends it, and sends
 * it again as long as `mayRetry` says of its error that it may be, as in the course of a failover.
 *
 * It is never sent after the limit.
 *
 * @param ready returns what has to be waited for, or undefined if nothing has.
 * @param onLate is given a reply that comes after the limit: it may hold messages.
 * @throws {UnansweredError} when the time is over, or the signal is aborted.
 */
export function callWithin<Reply>(
  { expiries, signal }: CallLimit,
  ready: () => Promise<void> | undefined,
  send: () => Promise<Reply>,
  mayRetry: (error: unknown) => boolean,
  onLate: (reply: Reply) => void = () => {},
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
      signal?.removeEventListener("abort", onAbort);
    };
    const onAbort = () => {
      finish();
      reject(aborted(signal as AbortSignal, isSent));
    };
    const expiry = expiries.add(() => {
      finish();
      reject(overdue(expiries.timeout, isSent));
    });
    signal?.addEventListener("abort", onAbort);

    const call = async (): Promise<Reply | undefined> => {
      const waiting = ready();
      if (waiting !== undefined) await waiting;
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

/** Why a call that took longer than `timeout` milliseconds has failed. */
export function overdue(timeout: number, wasSent: boolean): UnansweredError {
  const what = wasSent ? "Redis did not reply" : "Redis could not be reached";
  return new UnansweredError(`${what} within ${timeout} ms`, wasSent);
}

/** Why a call that its caller has aborted has failed. */
export function aborted(signal: AbortSignal, wasSent: boolean): UnansweredError {
  return new UnansweredError("the call was aborted", wasSent, { cause: signal.reason });
}

/**
 * Sends a command, and sends it again as long as `mayRetry` says of its error that it may be, until
 * `endsAt` (`performance.now()`).
 *
 * @param again is asked before it is sent again; it resolves when that is possible, to whether it is wanted still.
 */
export async function retrying<Reply>(
  send: () => Promise<Reply>,
  mayRetry: (error: unknown) => boolean,
  endsAt: number,
  again: () => Promise<boolean> = () => Promise.resolve(true),
): Promise<Reply> {
  const pause = new Pause(50, LONGEST_PAUSE);
  for (;;) {
    try {
      return await send();
    } catch (error) {
      // What Redis says is better to know than that the time is over.
      if (!mayRetry(error) || performance.now() + LONGEST_PAUSE > endsAt) throw error;
      await pause.wait();
      // Whatever else is in the way, it was sent once: its own error says whether it may have been carried out.
      if (!(await again().catch(() => false))) throw error;
    }
  }
}

const LONGEST_PAUSE = 500;
