import { search, type SearchReport } from "../../view/search.ts";
import type { Sighting } from "../../view/sighting.ts";
import type { ApiCall } from "./api-call.ts";

/** A message that a search found. */
interface Hit extends Pick<Sighting, "queue" | "id" | "key" | "group" | "partition"> {
  readonly state: Sighting["state"] | "handled";
}

/** What a search yields: what it found, and at its end where it has looked. */
type Found = { readonly hit: Hit } | { readonly report: SearchReport };

/**
 * `GET search`: the messages with the id or key `q`, in all queues and states. Replies with what it has found within a
 * second, and with `report` once it has looked everywhere. A message that was handled is found if its queue remembers it.
 */
export async function searchAll(call: ApiCall): Promise<unknown> {
  const q = call.sought;
  const list = JSON.stringify(["search", q]);
  const { items, next } = await call.running.readings.page(list, call.page, (signal) =>
    everywhere(call, q, signal),
  );
  const hits = items.flatMap((item) => ("hit" in item ? item.hit : []));
  const report = items.flatMap((item) => ("report" in item ? item.report : [])).at(-1);
  return { hits, report: report && shownReport(report), next };
}

async function* everywhere(
  { running: { sampler, inspector } }: ApiCall,
  q: string,
  signal: AbortSignal,
): AsyncGenerator<Found | undefined, void, void> {
  // The queues that the page shows: searching the names of all keys again would cost a scan.
  const { samples } = await sampler.round();
  const searching = search(inspector, q, { names: [...samples.keys()], signal });
  for (;;) {
    const { done, value } = await searching.next();
    if (done === true) {
      for (const handled of value.handled) yield { hit: hitOf({ state: "handled", ...handled }) };
      yield { report: value };
      return;
    }
    yield value && { hit: hitOf(value) };
  }
}

function hitOf({ queue, id, key, state, group, partition }: Hit): Hit {
  return { queue, id, key, state, group, partition };
}

function shownReport({ queues, unread, unsearchable, forgetful, failed }: SearchReport): unknown {
  const failures = failed.map(({ queue, error }) => ({ queue, error: error.message }));
  return { queues, unread, unsearchable, forgetful, failed: failures };
}
