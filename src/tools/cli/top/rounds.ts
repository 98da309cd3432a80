import { once } from "node:events";
import { sleepForNetwork } from "../../../inside.ts";
import { Sampler, type Round } from "../../view/samples/sampler.ts";
import type { Session } from "../session/session.ts";

/** Reads the numbers of all queues every `interval` milliseconds, until the signal; more rarely if there are many. */
export async function* rounds(
  session: Session,
  interval: number,
  signal: AbortSignal,
): AsyncGenerator<Round, void, void> {
  const sampler = new Sampler(await session.inspector(), undefined, { round: interval });
  const ended = signal.aborted ? Promise.resolve() : once(signal, "abort").then(() => {});
  let last: Round | undefined;
  while (!signal.aborted) {
    // A Redis that does not reply must not keep anybody waiting for the end.
    const round = await Promise.race([sampler.round(), ended]);
    // The last one again: with many queues the sampler rests for longer.
    if (round !== undefined && round !== last) yield (last = round);
    await sleepForNetwork(interval, signal);
  }
}
