import { RedisError } from "../../errors.ts";
import { hold } from "../../lua/partitions/hold.ts";
import { Pause } from "../../time/pause.ts";
import { DURATION } from "../exclusive/lease.ts";
import { endConnection } from "../exclusive/predecessor.ts";
import type { Part } from "../parts/part.ts";
import { formatFact, type Fact } from "../ring/fact.ts";

/** The lease of a change on a partition. */
export interface ChangeLease {
  readonly fence: number;
  /** The consumers of earlier holders, as `hold` returned them. */
  readonly fenced: readonly string[];
}

/** The process that a change takes leases as. It is the same in every process that works on the change. */
export function changeHolder({ epoch }: Fact): string {
  return `change:${epoch}`;
}

/**
 * Takes the lease on a partition for a change, once the handler that runs there has ended or its lease is over, and
 * kills the connections of holders that did not release it.
 *
 * Nothing has to renew this lease: until the change has ended, Redis refuses every consumer that asks for one, since it
 * knows less than the fact, and consumers that know the fact ask for none.
 */
export async function takeForChange(
  { queue }: Part,
  fact: Fact,
  signal: AbortSignal | undefined,
): Promise<ChangeLease> {
  const pause = new Pause(20, 200);
  const args = { process: changeHolder(fact), duration: DURATION, group: "" };
  const options = { signal, knownFact: formatFact(fact) };
  for (;;) {
    signal?.throwIfAborted();
    const held = await queue.read("take the lease on", hold, args, options);
    if (held.isOurs) {
      try {
        for (const connection of held.stale) {
          await endConnection(queue.server.connections, queue.keys.ready, connection);
        }
      } catch (error) {
        throw new RedisError(`cannot end a connection that reads "${queue.name}"`, error);
      }
      return { fence: held.fence, fenced: held.orphans };
    }
    await pause.wait();
  }
}
