import { isError } from "../values/thrown.ts";
import { RedisError, type DelaylineError } from "../errors.ts";
import { EarlyEndError, isConnectionCut, isOfMovingSlot, isOfWholeServer } from "../failure.ts";
import { networkTime } from "../time/runtime.ts";

/** A state of trouble that is over. */
export interface RecoveredEvent {
  /** The error that was reported when the trouble began, or when its reason changed. */
  readonly error: RedisError;
  /** How long the trouble lasted, in milliseconds. */
  readonly duration: number;
}

/** Receives what {@link Troubles} reports. */
export interface TroublesListener {
  readonly report: (error: DelaylineError) => void;
  readonly onRecovered: (recovery: RecoveredEvent) => void;
}

/** A background task that acts again and again. Its owner reports every outcome. */
export interface Work {
  /** It failed. Its owner tries again, or calls {@link Work.stopped} or {@link Work.ended}. */
  failed(failure: RedisError): void;
  /** It failed because there is no connection; `reason` says why. */
  unreachable(reason: unknown): void;
  /** It succeeded. Costs next to nothing unless it had failed before. */
  succeeded(): void;
  /**
   * It is not needed for now. An outage no longer waits for it. A refusal stays open: the next attempt may meet it
   * again, and is not reported a second time then.
   */
  stopped(): void;
  /**
   * It has stopped, and this process may never try again. Its refusal no longer matters, so it is over. If the task is
   * resumed after all, it may report the refusal anew.
   */
  ended(): void;
}

/** Joins a work that several owners share, as the subscriptions of one queue share their takes. */
export type JoinWork = () => Work;

interface Trouble {
  error: RedisError;
  /** `networkTime.now()`. */
  readonly since: number;
}

interface Outage extends Trouble {
  /** Whether all that is known of it is that slots of a Cluster move. */
  readonly isMove: boolean;
  /** Runs while it is not reported yet. */
  grace: NodeJS.Timeout | undefined;
}

/**
 * The troubles between one client and Redis. Each one is reported once when it begins and once when it is over, however
 * many tasks meet it and however often.
 *
 * There are two kinds:
 *
 * - an *outage*: Redis cannot be reached, or serves no client for now. The client has one at most. It begins with the first task
 *   that meets it. It is over when every task that met it has succeeded, or has stopped and another task was served after that;
 * - a *refusal* (WRONGTYPE, NOPERM, OOM): it belongs to one task, and is reported again when its reason changes. It is
 *   over when the task has succeeded or {@link Work.ended}.
 *
 * The first sign of an outage is often a lost connection, which does not reveal the cause. So the report waits for a
 * moment: an attempt to connect may reveal it. It waits longer while the slots of a Cluster move: nothing is lost then, so
 * a move that ends soon is not reported at all.
 */
export class Troubles {
  readonly #listener: TroublesListener;
  /** The tasks that have met the outage. */
  readonly #unserved = new Set<Work>();
  /** Whether a task that met the outage has stopped, and Redis has not been heard since. */
  #isSilent = false;
  #outage: Outage | undefined;
  #isClosing = false;
  #isClosed = false;

  constructor(listener: TroublesListener) {
    this.#listener = listener;
  }

  /** Adds a task. */
  work(): Work {
    let refusal: Trouble | undefined;
    const work: Work = {
      failed: (failure) => {
        if (this.#isClosed) return;
        if (isOfWholeServer(failure.reply)) {
          this.#meetOutage(work, failure);
          return;
        }
        this.#serve(work);
        const isNews = refusal?.error.reply !== failure.reply;
        if (!isNews) return;
        refusal = { error: failure, since: refusal?.since ?? networkTime.now() };
        this.#listener.report(failure);
      },
      // A server that is going down ends connections early. The next attempt tells more.
      unreachable: (reason) =>
        this.#meetOutage(
          work,
          new RedisError(UNREACHABLE, reason),
          !(reason instanceof EarlyEndError),
        ),
      succeeded: () => {
        this.#serve(work);
        if (refusal !== undefined) this.#recover(refusal);
        refusal = undefined;
      },
      stopped: () => {
        if (this.#unserved.delete(work)) this.#isSilent = true;
      },
      ended: () => {
        work.stopped();
        // Every task ends with the client, and that mends nothing.
        if (refusal !== undefined && !this.#isClosing) this.#recover(refusal);
        refusal = undefined;
      },
    };
    return work;
  }

  /**
   * Adds a work for several owners, each of whom joins it: they are refused for the same reason, which is reported once.
   * It has {@link Work.ended} once all that joined have.
   */
  sharedWork(): JoinWork {
    const work = this.work();
    const owners = new Set<Work>();
    return () => {
      const share: Work = {
        ...work,
        ended: () => {
          if (owners.delete(share) && owners.size === 0) work.ended();
        },
      };
      owners.add(share);
      return share;
    };
  }

  /** Whether an outage is over as soon as Redis is {@link heard}. */
  get endsWhenHeard(): boolean {
    return this.#isSilent;
  }

  /**
   * Redis has replied to some connection of the client. Never called on Cluster: there, a reply of one node does not
   * show that the others can be reached.
   */
  heard(): void {
    if (!this.#isSilent) return;
    this.#isSilent = false;
    this.#endOutage();
  }

  /** The client begins to close: from now on the end of a task does not count as a recovery. */
  closing(): void {
    this.#isClosing = true;
  }

  /** Reports an outage whose report is still held back, and nothing after that. */
  close(): void {
    this.#settleReport();
    this.#isClosed = true;
  }

  /** Unless the failure `isTelling`, the report still waits for a better one. */
  #meetOutage(work: Work, failure: RedisError, isTelling = true): void {
    if (this.#isClosed) return;
    this.#unserved.add(work);
    const isMove = isOfMovingSlot(failure.cause);
    const met = this.#outage;
    // Whatever comes on top of a move is more than a move.
    const isMore = met === undefined || (met.grace !== undefined && met.isMove && !isMove);
    const outage = isMore ? this.#beginOutage(failure, isMove) : met;
    if (outage.grace === undefined || isMove || !revealsCause(failure)) return;
    const isUnreachable = failure.reply === undefined;
    outage.error = isUnreachable ? new RedisError(UNREACHABLE, failure.cause) : failure;
    if (isTelling) this.#reportOutage();
  }

  #beginOutage(error: RedisError, isMove: boolean): Outage {
    networkTime.clearTimeout(this.#outage?.grace);
    const since = this.#outage?.since ?? networkTime.now();
    const grace = networkTime.setTimeout(() => this.#reportOutage(), isMove ? MOVE : GRACE);
    return (this.#outage = { error, since, isMove, grace });
  }

  #serve(work: Work): void {
    if (this.#outage === undefined) return;
    this.#unserved.delete(work);
    this.#isSilent = false;
    this.#endOutage();
  }

  #reportOutage(): void {
    if (this.#outage?.grace === undefined) return;
    networkTime.clearTimeout(this.#outage.grace);
    this.#outage.grace = undefined;
    this.#listener.report(this.#outage.error);
  }

  /** Ends the grace of an outage that waits no longer. Returns whether the outage is reported. */
  #settleReport(): boolean {
    const outage = this.#outage;
    const isShortMove = outage?.grace !== undefined && outage.isMove;
    if (isShortMove) networkTime.clearTimeout(outage.grace);
    // Also if the next connection was there at once: a message may have been lost with the connection before it.
    else this.#reportOutage();
    return !isShortMove;
  }

  #endOutage(): void {
    const outage = this.#outage;
    if (outage === undefined || this.#unserved.size > 0 || this.#isSilent) return;
    if (this.#settleReport()) this.#recover(outage);
    this.#outage = undefined;
  }

  #recover({ error, since }: Trouble): void {
    if (this.#isClosed) return;
    this.#listener.onRecovered({ error, duration: networkTime.now() - since });
  }
}

/** Whether a failure says why Redis cannot be reached, not only that a connection was lost. */
function revealsCause({ reply, message, cause }: RedisError): boolean {
  if (reply !== undefined) return true;
  if (isConnectionCut(cause)) return false;
  return message.startsWith(UNREACHABLE) || (isError(cause) && "code" in cause);
}

const UNREACHABLE = "cannot reach Redis";

/** Milliseconds that the report of an outage waits for the cause. */
const GRACE = 300;

/** Milliseconds that slots may move before that is reported. */
const MOVE = 5000;
