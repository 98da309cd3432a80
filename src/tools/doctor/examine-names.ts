import { isEmpty, type Inspector } from "../inspect/inspector.ts";
import { suggest } from "../inspect/suggest.ts";
import type { Finding } from "./checks/finding.ts";

/**
 * Reports the names that have no queue, with a similar name that has one. A misspelt name would otherwise look healthy.
 */
export async function* examineNames(
  names: readonly string[],
  inspector: Inspector,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding, void, void> {
  for (const queue of names) {
    try {
      if (!isEmpty(await inspector.line.stats(queue, { signal }))) continue;
      const others = (await inspector.names(signal)).filter((name) => name !== queue);
      const near = suggest(queue, others);
      yield {
        level: "error",
        check: "no-queue",
        queue,
        what: `there is no queue of that name${near === undefined ? "" : `; there is "${near}"`}`,
        why: "it holds no messages, and no process has it open: its messages are elsewhere, or were never offered",
        repair:
          "check its spelling, and that this is its server and database; a drained queue that nobody uses looks the same",
      };
    } catch {
      signal?.throwIfAborted();
      // Its exam reports why the queue cannot be read.
    }
  }
}
