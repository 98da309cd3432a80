import { listPage } from "../lua/ready/quarantine.ts";
import { run } from "../lua/script.ts";
import type { Call } from "./call.ts";
import type { QueueKeys } from "./keys.ts";
import type { Queue } from "./queue.ts";

/**
 * Yields the elements of one of a queue's LISTs, from its head, without removing them. Reads bounded pages. This is not
 * a snapshot: if an element is removed during the iteration, others may be missed.
 */
export async function* elementsOf(
  queue: Queue,
  list: keyof Pick<QueueKeys, "ready" | "quarantine" | "unreadable">,
  call?: Call,
): AsyncGenerator<Buffer, void, void> {
  const doing = list === "ready" ? "read" : "read the quarantine of";
  for (let position = 0; ;) {
    const args = { position, step: STEP, maxBytes: PAGE_BYTES };
    const page = await queue.call(
      doing,
      (redis, keys) => run(redis, listPage, { list: keys[list] }, args),
      call,
    );
    if (page.length === 0) return;
    yield* page;
    position += page.length;
  }
}

/** Elements per script, and the bytes after which it stops: about 100 us of Redis's time. */
const STEP = 100;
const PAGE_BYTES = 65_536;
