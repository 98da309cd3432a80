import type { Reduction } from "./machine/machine.ts";
import type { Outcome } from "./machine/simulate.ts";

/**
 * Looks for a smaller run that still fails: with fewer faults, fewer operations, and a later part in plain order.
 *
 * @param tryOut runs the seed with a reduction, and returns what came of it.
 */
export async function shrink(
  failure: Outcome,
  tryOut: (reduction: Reduction) => Promise<Outcome>,
): Promise<{ readonly reduction: Reduction; readonly outcome: Outcome }> {
  let best: Reduction = { faults: upTo(failure.faultCount), without: [] };
  let outcome = failure;
  const isFailure = async (reduction: Reduction): Promise<boolean> => {
    const found = await tryOut(reduction);
    if (found.violations.length === 0) return false;
    best = reduction;
    outcome = found;
    return true;
  };
  await isFailure(best);
  const { faults = [] } = best;
  await fewest(faults, (kept) => isFailure({ ...best, faults: kept }));
  const all = upTo(failure.operationCount);
  await fewest(all, (kept) =>
    isFailure({ ...best, without: all.filter((n) => !kept.includes(n)) }),
  );
  // The earliest step from which on the order may be plain.
  let least = 0;
  let most = outcome.events;
  while (least < most) {
    const middle = Math.floor((least + most) / 2);
    if (await isFailure({ ...best, orderlyFrom: middle })) most = middle;
    else least = middle + 1;
  }
  return { reduction: best, outcome };
}

/** Leaves out halves, then quarters and so on, as long as what remains still fails. */
async function fewest(
  all: readonly number[],
  fails: (kept: readonly number[]) => Promise<boolean>,
): Promise<void> {
  let kept = [...all];
  for (
    let size = Math.ceil(kept.length / 2);
    size >= 1;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let from = 0; from < kept.length;) {
      const fewer = kept.filter((_, i) => i < from || i >= from + size);
      if (await fails(fewer)) kept = fewer;
      else from += size;
    }
  }
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}
