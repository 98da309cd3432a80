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

/** The wait for a call, as what sends the command sees it. */
export interface Wait {
  /** When it is over (`networkTime.now()`), unless it is put off. */
  readonly endsAt: number;
  /**
   * Whether it is over. Nothing is sent then. Not a getter: V8 makes a hidden class for each literal that has one, and
   * that keeps what the literal refers to until a full garbage collection.
   */
  hasEnded(): boolean;
  /** Called right before the command is sent for the first time; returns whether it is still wanted. */
  begin(): boolean;
}

/**
 * Waits for the reply to a command that `send` sends. It must not be sent after the limit: only a reply that is under way
 * is awaited longer.
 *
 * @param onLate receives a reply that comes after the limit: it may hold messages.
 * @param isMoving tells whether the connection that carries the command gets on; see `Progress`.
 * @throws {UnansweredError} when the time is over or the signal is aborted.
 */
export function callWithin<Reply>(
  { expiries, signal }: CallLimit,
  send: (wait: Wait) => Promise<Reply | undefined>,
  onLate: (reply: Reply) => void = () => {},
  isMoving: () => boolean = () => false,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(aborted(signal, false));
      return;
    }
    const finish = () => {
      wait.isOver = true;
      expiries.remove(expiry);
      unlisten?.();
    };
    const expiry = expiries.add(
      () => {
        finish();
        reject(overdue(expiries.timeout, wait.isSent));
      },
      () => wait.isSent && isMoving(),
    );
    const wait = new OneWait(expiry.endsAt);
    const unlisten =
      signal &&
      onAbort(signal, () => {
        finish();
        reject(aborted(signal, wait.isSent));
      });
    send(wait).then(
      (reply) => {
        if (wait.isOver && wait.isSent) onLate(reply as Reply);
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

/** The wait of one caller. */
class OneWait implements Wait {
  readonly endsAt: number;
  isSent = false;
  isOver = false;

  constructor(endsAt: number) {
    this.endsAt = endsAt;
  }

  begin(): boolean {
    this.isSent = !this.isOver;
    return this.isSent;
  }

  hasEnded(): boolean {
    return this.isOver;
  }
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
export function retrying<Reply>(
  send: () => Promise<Reply>,
  mayRetry: (error: unknown) => boolean,
  endsAt: number,
  again: () => Promise<boolean>,
): Promise<Reply> {
  // Every call passes here, so what only failures need is made by the first one.
  const sentAt = networkTime.now();
  return send().catch((error: unknown) =>
    sendAgain({ error, sentAt }, send, mayRetry, endsAt, again),
  );
}

async function sendAgain<Reply>(
  { error, sentAt }: { error: unknown; sentAt: number },
  send: () => Promise<Reply>,
  mayRetry: (error: unknown) => boolean,
  endsAt: number,
  again: () => Promise<boolean>,
): Promise<Reply> {
  const pause = new Pause(50, LONGEST_PAUSE);
  let mayBeDone = false;
  for (;;) {
    if (mayBeDone) noteEarlierCopy(error);
    mayBeDone ||= !hadNoEffect(error);
    if (!mayRetry(error)) throw error;
    // Reject before the time is over: Redis's reply says more than a timeout. A Cluster client may need a while to
    // find out that no node serves a slot, and the next time twice as long.
    const now = networkTime.now();
    const next = LONGEST_PAUSE + (replyOf(error) === undefined ? 0 : 2 * (now - sentAt));
    if (now + next > endsAt) throw error;
    await pause.wait();
    // The error of `again` is of no use: only this one says whether Redis may have carried out the command.
    if (!(await again().catch(() => false))) throw error;
    sentAt = networkTime.now();
    try {
      return await send();
    } catch (other) {
      error = other;
    }
  }
}

/** Milliseconds. */
const LONGEST_PAUSE = 500;
