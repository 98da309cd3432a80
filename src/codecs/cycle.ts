import { pathText, type PathStep } from "./path.ts";

/**
 * Says where a payload holds itself, such as `payload.lines[0].order is payload itself`; undefined if it does not, or is
 * nested too deeply to tell. Names paths only, and no values.
 */
export function findCycle(payload: unknown): string | undefined {
  try {
    return cycleIn(payload, { path: [], around: new Map(), searched: new Set() });
  } catch {
    // A getter that throws, or a payload deeper than the stack.
    return undefined;
  }
}

interface Search {
  readonly path: readonly PathStep[];
  /** The objects around the value, with their paths. */
  readonly around: Map<object, readonly PathStep[]>;
  /** Objects that hold no cycle. Without them, a search of what is shared many times would never end. */
  readonly searched: Set<object>;
}

function cycleIn(value: unknown, { path, around, searched }: Search): string | undefined {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return undefined;
  const before = around.get(value);
  if (before !== undefined) return `${pathText(path)} is ${pathText(before)} itself`;
  if (searched.has(value)) return undefined;
  around.set(value, path);
  const steps: Iterable<readonly [PathStep, unknown]> = Array.isArray(value)
    ? value.entries()
    : Object.entries(value);
  for (const [step, item] of steps) {
    const found = cycleIn(item, { path: [...path, step], around, searched });
    if (found !== undefined) return found;
  }
  around.delete(value);
  searched.add(value);
  return undefined;
}
