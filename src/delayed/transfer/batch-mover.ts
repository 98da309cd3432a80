import { QuarantineError } from "../../errors.ts";
import { sweep, transfer, type TransferReply } from "../../lua/delayed/transfer.ts";
import { transfers } from "../../observe/events.ts";
import type { PauseWatch } from "../../queue/pause-watch.ts";
import type { Queue } from "../../queue/queue.ts";
import type { StandBy } from "./stand-by.ts";

/**
 * Moves one batch of due messages at a time for a transfer task, and passes on what the reply says about the server's
 * clock, the pause and the quarantine. The task decides when to move.
 */
export class BatchMover {
  readonly #queue: Queue;
  readonly #standBy: StandBy;
  readonly #pauses: Pick<PauseWatch, "note">;
  readonly #knownFact: () => string | undefined;

  constructor(
    queue: Queue,
    standBy: StandBy,
    options: {
      readonly pauses: Pick<PauseWatch, "note">;
      readonly knownFact?: (() => string | undefined) | undefined;
    },
  ) {
    this.#queue = queue;
    this.#standBy = standBy;
    this.#pauses = options.pauses;
    this.#knownFact = options.knownFact ?? (() => undefined);
  }

  /**
   * Runs `transfer` or `sweep` once; `mustClaim` makes it claim the move in Redis, even if the last claim is recent.
   *
   * Rejects with the error that ioredis rejects with.
   */
  async move(kind: "transfer" | "sweep", mustClaim: boolean): Promise<TransferReply> {
    const sentAt = performance.now();
    const scripts = kind === "sweep" ? sweep : transfer;
    const isClaiming = mustClaim || this.#standBy.isClaimDue(sentAt);
    const args = {
      limit: BATCH,
      grace: this.#standBy.grace,
      task: this.#standBy.task,
      claim: isClaiming ? 1 : 0,
      makes: this.#queue.makesStream ? 1 : 0,
    };
    const { background } = this.#queue.server.connections;
    const reply = await this.#queue.run(background, scripts, args, [], this.#knownFact());
    const { moved, quarantined } = reply;
    if (isClaiming && moved > 0) this.#standBy.onClaimed(sentAt);
    this.#queue.clock.observe(reply.serverTime, sentAt);
    if (reply.isPaused !== undefined) this.#pauses.note(reply.isPaused);
    if (quarantined > 0) this.#queue.report(new QuarantineError(this.#queue.name, quarantined));
    if (moved > 0) this.#count(reply);
    return reply;
  }

  #count({ moved, dueSince = NaN, serverTime }: TransferReply): void {
    const { counters } = this.#queue;
    const lateness = Math.max(0, serverTime - dueSince);
    counters.transferred += moved;
    counters.systemLateness.record(lateness, moved);
    if (!transfers.hasSubscribers) return;
    transfers.publish({ queue: counters.queue, count: moved, lateness });
  }
}

/** Messages per batch: some 200 microseconds of Redis's time. */
const BATCH = 100;
