import { RedisError, type DelaylineError } from "../errors.ts";
import { isConnectionCut, isOfWholeServer } from "../failure.ts";

/** A state of trouble that is over. */
export interface Recovery {
  /** What had failed: the error that was reported when the trouble began, or when its reason changed. */
  readonly error: RedisError;
  /** How long it has lasted, in milliseconds. */
  readonly duration: number;
}

/** Who hears of troubles. */
export interface TroublesListener {
  readonly report: (error: DelaylineError) => void;
  readonly onRecovered: (recovery: Recovery) => void;
}

/** Something that is done again and again in the background, and how it gets on. */
export interface Work {
  /** It has failed; it is going to be tried again, or {@link Work.stopped}. */
  failed(failure: RedisError): void;
  /** It has failed since there is no connection; `reason` says why. */
  unreachable(reason: unknown): void;
  /** It has succeeded. Costs next to nothing where it had not failed. */
  succeeded(): void;
  /** It is not tried again for now: nobody needs it. */
  stopped(): void;
}

interface Trouble {
  error: RedisError;
  readonly since: number;
}

/**
 * What is wrong between one client and Redis. Each state of trouble is reported once when it begins, and
 * once when it is over, however many works find it and however often.
 *
 * There are two kinds:
 *
 * - an *outage*: Redis cannot be reached, or serves nobody for now. There is one for the whole client. It
 *   begins with the first work that finds it, and is over when each work that did has succeeded, or
 *   has stopped and another was served after it;
 * - a *refusal* (WRONGTYPE, NOPERM, OOM): it is of one work, and is reported again when its reason changes.
 *
 * The first sign of an outage is often a connection that was cut, which says nothing of the cause. So a
 * moment may pass until it is reported: until an attempt to connect tells the cause.
 */
export class Troubles {
  readonly #listener: TroublesListener;
  /** The works that have met the outage. */
  readonly #unserved = new Set<Work>();
  /** Whether one that had met it has stopped, and Redis was not heard since. */
  #isSilent = false;
  #outage: Trouble | undefined;
  #isClosed = false;
  /** While the outage is not reported yet. */
  #grace: NodeJS.Timeout | undefined;

  constructor(listener: TroublesListener) {
    this.#listener = listener;
  }

  /** One more thing that may fail. */
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
        refusal = { error: failure, since: refusal?.since ?? performance.now() };
        this.#listener.report(failure);
      },
      unreachable: (reason) => this.#meetOutage(work, new RedisError(UNREACHABLE, reason)),
      succeeded: () => {
        this.#serve(work);
        if (refusal !== undefined) this.#recover(refusal);
        refusal = undefined;
      },
      stopped: () => {
        if (this.#unserved.delete(work)) this.#isSilent = true;
      },
    };
    return work;
  }

  /** Redis has replied to somebody. */
  heard(): void {
    if (!this.#isSilent) return;
    this.#isSilent = false;
    this.#endOutage();
  }

  /** Reports what waits to be reported, and nothing from then on. */
  close(): void {
    this.#reportOutage();
    this.#isClosed = true;
  }

  #meetOutage(work: Work, failure: RedisError): void {
    if (this.#isClosed) return;
    this.#unserved.add(work);
    if (this.#outage === undefined) {
      this.#outage = { error: failure, since: performance.now() };
      this.#grace = setTimeout(() => this.#reportOutage(), GRACE);
    }
    if (this.#grace === undefined || !tellsCause(failure)) return;
    const isUnreachable = failure.reply === undefined;
    this.#outage.error = isUnreachable ? new RedisError(UNREACHABLE, failure.cause) : failure;
    this.#reportOutage();
  }

  #serve(work: Work): void {
    if (this.#outage === undefined) return;
    this.#unserved.delete(work);
    this.#isSilent = false;
    this.#endOutage();
  }

  #reportOutage(): void {
    if (this.#grace === undefined || this.#outage === undefined) return;
    clearTimeout(this.#grace);
    this.#grace = undefined;
    this.#listener.report(this.#outage.error);
  }

  #endOutage(): void {
    if (this.#outage === undefined || this.#unserved.size > 0 || this.#isSilent) return;
    // A cut connection may have lost a message: it leaves a trace, however soon the next one is there.
    this.#reportOutage();
    this.#recover(this.#outage);
    this.#outage = undefined;
  }

  #recover({ error, since }: Trouble): void {
    this.#listener.onRecovered({ error, duration: performance.now() - since });
  }
}

/** Whether a failure says why Redis cannot be reached, not only that a connection was lost. */
function tellsCause({ reply, message, cause }: RedisError): boolean {
  if (reply !== undefined) return true;
  if (isConnectionCut(cause)) return false;
  return message.startsWith(UNREACHABLE) || (cause instanceof Error && "code" in cause);
}

const UNREACHABLE = "cannot reach Redis";

/** Milliseconds in which the cause of an outage may become known. */
const GRACE = 300;
