import { setPaused } from "../../lua/queue/set-paused.ts";
import { groups, openGroup } from "../../lua/reliable/groups.ts";
import type { Call } from "../../queue/call.ts";
import { FROM_ORDINARY, formatFact, ORDINARY, type Fact } from "../ring/fact.ts";
import type { Part } from "./part.ts";

/**
 * Prepares the partitions that a queue gets by `fact`, before they can hold a message: pauses or resumes them, notes the
 * revisions of its sets of schedules, and creates its consumer groups, which also makes them reliable. A partition that was in use before an earlier
 * change may hold an outdated state.
 *
 * Redis refuses it to a process whose `known` fact is old by now: it may have stood still, and what it has read may be
 * outdated.
 */
export async function prepare(
  at: (partition: number) => Part,
  { epoch, from, to }: Fact,
  known?: Fact,
  call?: Call,
): Promise<void> {
  const guarded = { ...call, knownFact: known && formatFact(known) };
  const isOrdinaryToo = from === FROM_ORDINARY;
  const model = at(isOrdinaryToo ? ORDINARY : 0);
  const fresh = Array.from({ length: Math.max(0, to - from) }, (_, i) => at(from + i));
  // When an ordinary queue joins existing partitions, these decide whether it is paused.
  const isLate = isOrdinaryToo && epoch > 1;
  const pausedAs = isLate ? at(0) : model;
  let isPaused: boolean;
  do {
    isPaused = await pausedAs.pauses.ask(call);
    for (const part of isLate ? [model] : fresh) await setPausedOf(part, isPaused, guarded);
    // Another process may have paused or resumed the queue meanwhile.
  } while (isPaused !== (await pausedAs.pauses.ask(call)));
  for (const set of await model.schedules.revisions(call)) {
    for (const { schedules } of fresh) await schedules.raise(set, guarded);
  }
  const names = await model.queue.read("ask for the groups of", groups, {}, call);
  for (const { queue } of fresh) {
    const { channel } = queue.keys;
    for (const group of names) {
      await queue.read("open", openGroup, { channel, group, start: "0" }, guarded);
    }
  }
}

async function setPausedOf({ queue, pauses }: Part, isPaused: boolean, call: Call): Promise<void> {
  if ((await pauses.ask(call)) === isPaused) return;
  const args = { channel: queue.keys.channel, isPaused: isPaused ? 1 : 0 };
  await queue.read("pause", setPaused, args, call);
}
