import { HttpError } from "../http/reply.ts";
import type { ApiCall } from "./api-call.ts";

// Redis has each list in one order. In another one, the first of its items are sorted here.

/** The most items of a list that are sorted: those that come first in Redis's order. */
export const MOST_SORTED = 2000;

/** The fields that lists can be sorted by. */
const FIELDS = [
  "key",
  "queue",
  "state",
  "deadline",
  "offeredAt",
  "readyAt",
  "takenAt",
  "diedAt",
  "attempts",
  "size",
  "group",
  "host",
  "pid",
  "consumer",
  "reason",
  "position",
  "partition",
] as const;

/** The order of a list. */
interface Sort {
  readonly field: (typeof FIELDS)[number];
  /** Whether the greatest come first. */
  readonly isDown: boolean;
}

/** The order that a call wants: `sort=size`, or `sort=-size` for the greatest first; undefined for that of Redis. */
export function sortOf(call: ApiCall): Sort | undefined {
  const sort = call.value("sort");
  if (sort === undefined) return undefined;
  const field = FIELDS.find((one) => one === sort.replace(/^-/, ""));
  if (field !== undefined) return { field, isDown: sort.startsWith("-") };
  throw new HttpError(
    400,
    `sort must be one of ${FIELDS.join(", ")}, with - for the greatest first`,
  );
}

/** The page of a list that a call wants. A sorted one has nothing to show before all is read. */
export function pageOf({ page }: ApiCall, sort: Sort | undefined) {
  return sort === undefined ? page : { ...page, maxTime: MAX_TIME_SORTED };
}

/** How long reading a list may take that is sorted (ms). */
const MAX_TIME_SORTED = 10_000;

/**
 * The items of a list in another order: the first {@link MOST_SORTED} of them. Equal ones keep their order, and those without
 * the field come last. Without a `sort`, the list as it is.
 */
export async function* sorted<Item extends object>(
  list: AsyncGenerator<Item | undefined, void, void>,
  sort: Sort | undefined,
): AsyncGenerator<Item | undefined, void, void> {
  if (sort === undefined) {
    yield* list;
    return;
  }
  const items: Item[] = [];
  for await (const item of list) {
    if (item === undefined) yield undefined;
    else if (items.push(item) >= MOST_SORTED) break;
  }
  const valueOf = (item: Item) => (item as Record<string, unknown>)[sort.field] ?? undefined;
  const known = items.filter((item) => valueOf(item) !== undefined);
  const sign = sort.isDown ? -1 : 1;
  yield* known.toSorted((a, b) => sign * compared(valueOf(a), valueOf(b)));
  yield* items.filter((item) => valueOf(item) === undefined);
}

function compared(a: unknown, b: unknown): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const [one, other] = [String(a), String(b)];
  return one === other ? 0 : one < other ? -1 : 1;
}
