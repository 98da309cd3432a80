import { setPaused } from "../../lua/queue/set-paused.ts";
import { groups, openGroup } from "../../lua/reliable/groups.ts";
import { FROM_ORDINARY, formatFact, ORDINARY, type Fact } from "../ring/fact.ts";
import type { Part } from "./part.ts";

/**
 * Prepares the partitions that a queue gets by `fact`, before they can hold a message: pauses or resumes them, and
 * creates the queue's consumer groups, which also makes them reliable. A partition that was in use before an earlier
 * change may hold an outdated state.
 *
 * Redis refuses it to a process whose `known` fact is old by now: it may have stood still, and what it has read may be
 * outdated.
 */
export async function prepare(
  at: (partition: number) => Part,
  { epoch, from, to }: Fact,
  { known, signal }: { readonly known?: Fact; readonly signal?: AbortSignal | undefined } = {},
): Promise<void> {
  const options = { signal, knownFact: known && formatFact(known) };
  const isOrdinaryToo = from === FROM_ORDINARY;
  const model = at(isOrdinaryToo ? ORDINARY : 0);
  const fresh = Array.from({ length: Math.max(0, to - from) }, (_, i) => at(from + i));
  // When an ordinary queue joins existing partitions, these decide whether it is paused.
  const isLate = isOrdinaryToo && epoch > 1;
  const pausedAs = isLate ? at(0) : model;
  let isPaused: boolean;
  do {
    isPaused = await pausedAs.pauses.ask(signal);
    for (const part of isLate ? [model] : fresh) await setPausedOf(part, isPaused, options);
    // Another process may have paused or resumed the queue meanwhile.
  } while (isPaused !== (await pausedAs.pauses.ask(signal)));
  const names = await model.queue.read("ask for the groups of", groups, {}, { signal });
  for (const { queue } of fresh) {
    const { channel } = queue.keys;
    for (const group of names) {
      await queue.read("open", openGroup, { channel, group, start: "0" }, options);
    }
  }
}

async function setPausedOf(
  { queue, pauses }: Part,
  isPaused: boolean,
  options: { readonly signal: AbortSignal | undefined; readonly knownFact: string | undefined },
) {
  if ((await pauses.ask(options.signal)) === isPaused) return;
  const args = { channel: queue.keys.channel, isPaused: isPaused ? 1 : 0 };
  await queue.read("pause", setPaused, args, options);
}
