import type { PartReport } from "../looks/part-report.ts";
import type { Finding } from "./finding.ts";
import { quoted } from "./repair.ts";

/** Whether another program uses a key of the queue. */
export function* checkKeys(queue: string, { wrongTypes }: PartReport): Generator<Finding> {
  for (const { key, found, expected } of wrongTypes) {
    yield {
      level: "error",
      check: "key-type",
      queue,
      what: `the key ${key} holds a ${found}; the queue needs a ${expected} there`,
      why: "every script that touches it is refused (WRONGTYPE), and the rest of the queue was not looked at",
      repair: `find out who writes it; move it away: redis-cli RENAME ${quoted(key)} ${quoted(`set-aside:${key}`)}; or choose another name for the queue`,
    };
  }
}
