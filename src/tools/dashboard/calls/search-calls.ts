import { locate } from "../../inspect/locate.ts";
import type { Sighting } from "../../inspect/sighting.ts";
import type { Call } from "./call.ts";

/** A message that a search found. */
type Hit = Pick<Sighting, "queue" | "id" | "key" | "state" | "group" | "partition">;

/** Where a search has looked. */
interface SearchReport {
  /** How many queues it searched. */
  readonly queues: number;
  /** Plain queues with ready messages, which have neither ids nor keys. */
  readonly unsearchable: readonly string[];
  /** Queues that could not be read. */
  readonly failed: readonly { readonly queue: string; readonly error: string }[];
}

/**
 * `GET search`: the messages with the id or key `q`, in all queues and states. Replies with what it has found within a
 * second, and with `report` once it has looked everywhere.
 */
export async function search(call: Call): Promise<unknown> {
  const { running } = call;
  const q = call.sought;
  const list = JSON.stringify(["search", q]);
  const { items, next } = await running.readings.page(list, call.page, (signal) =>
    everywhere(call, q, signal),
  );
  const hits = items.flatMap((item) => ("hit" in item ? item.hit : []));
  const report = items.flatMap((item) => ("report" in item ? item.report : [])).at(-1);
  return { hits, report, next };
}

async function* everywhere(
  { running: { sampler, inspector } }: Call,
  q: string,
  signal: AbortSignal,
): AsyncGenerator<
  { readonly hit: Hit } | { readonly report: SearchReport } | undefined,
  void,
  void
> {
  const { samples } = await sampler.round();
  const unsearchable: string[] = [];
  const failed: { queue: string; error: string }[] = [];
  for (const queue of samples.keys()) {
    try {
      const { sightings, mayBeReady } = await locate(await inspector.open(queue, signal), q, {
        signal,
      });
      if (mayBeReady) unsearchable.push(queue);
      for (const { id, key, state, group, partition } of sightings) {
        yield { hit: { queue, id, key, state, group, partition } };
      }
    } catch (error) {
      signal.throwIfAborted();
      failed.push({ queue, error: (error as Error).message });
    }
    yield undefined;
  }
  yield { report: { queues: samples.size, unsearchable, failed } };
}
