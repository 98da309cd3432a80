import { shellWord } from "../../inspect/shell-word.ts";
import type { PartReport } from "../looks/part-report.ts";
import type { Finding } from "./finding.ts";
import { redisCliAtKey } from "./repair.ts";

/** Checks whether another program uses a key of the queue. */
export function* checkKeys(queue: string, { wrongTypes, site }: PartReport): Generator<Finding> {
  for (const { key, found, expected } of wrongTypes) {
    const taken = site.keyPrefix + key;
    // In the same slot of a Cluster.
    const aside = shellWord(taken.includes("{") ? `set-aside:${taken}` : `{${taken}}:set-aside`);
    yield {
      level: "error",
      check: "key-type",
      queue,
      what: `the key ${key} holds a ${found}; the queue needs a ${expected} there`,
      why: "Redis refuses every script that touches it (WRONGTYPE); the rest of the queue was not checked",
      repair: `find out which program writes it, then move it away: ${redisCliAtKey(site, "RENAME", key, aside)}; or give the queue another name`,
    };
  }
}
