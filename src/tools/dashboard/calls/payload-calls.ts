import { MOST_BARE } from "../../view/bare.ts";
import { rowPayload, type ApiCall } from "./api-call.ts";
import { MOST_SORTED, pageOf, sorted, sortOf } from "./sorted.ts";
import { payloadsOf, wantedOf } from "./wanted.ts";

/**
 * `GET queues/:q/payloads`: the payloads without ids and keys, in the quarantine, or with `state=ready` in a plain queue; with
 * `kind`, those that are a `payload` or a whole `message`; with `text`, those that contain it; with `sort`, in the order of
 * a field.
 */
export async function listPayloads(call: ApiCall): Promise<unknown> {
  const { wantsPayload } = call;
  const wanted = wantedOf(call);
  const state = wanted.state === "ready" ? "ready" : "quarantined";
  const sort = sortOf(call);
  const queue = await call.open();
  const read = async function* (signal: AbortSignal) {
    for await (const found of payloadsOf(queue, state, wanted, signal)) {
      if (found === undefined) {
        yield undefined;
        continue;
      }
      const { bytes, ...others } = found;
      yield { ...others, ...(wantsPayload && { payload: rowPayload(bytes) }) };
    }
  };
  const list = JSON.stringify([call.queue, wanted, wantsPayload, sort]);
  const { items, next, looked } = await call.running.readings.page(
    list,
    pageOf(call, sort),
    (signal) => sorted(read(signal), sort),
  );
  return {
    payloads: items,
    next,
    looked,
    most: MOST_BARE,
    ...(sort && { sortedAmong: MOST_SORTED }),
  };
}
