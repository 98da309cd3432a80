import type { Call } from "./call.ts";
import { listedPayload } from "./shown-payload.ts";

/** `GET queues/:q/quarantine`: how many entries the quarantine has, and the first of them. */
export async function showQuarantine(call: Call): Promise<unknown> {
  const { signal, wantsPayload } = call;
  const { limit } = call.page;
  const { quarantine } = (await call.open()).messages;
  const items: unknown[] = [];
  for await (const bytes of quarantine) {
    items.push({ size: bytes.length, ...(wantsPayload && { payload: listedPayload(bytes) }) });
    if (items.length >= limit) break;
  }
  return { size: await quarantine.size({ signal }), items };
}

/** `POST queues/:q/quarantine/requeue`: makes the payloads in quarantine ready again. */
export async function requeueQuarantine(call: Call): Promise<unknown> {
  const { messages } = await call.open();
  return { count: await messages.quarantine.requeue(undefined, { signal: call.signal }) };
}

/** `POST queues/:q/quarantine/remove`: deletes everything in quarantine for good. */
export async function removeQuarantine(call: Call): Promise<unknown> {
  const { messages } = await call.open();
  return { count: await messages.quarantine.clear({ signal: call.signal }) };
}
