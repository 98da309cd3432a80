import type { Elements } from "../../src/lua/family.ts";
import { Counters } from "../../src/observe/counters.ts";
import { Part } from "../../src/partitions/parts/part.ts";
import { ORDINARY } from "../../src/partitions/ring/fact.ts";
import type { Server } from "../../src/redis/server.ts";

/** The only part of an ordinary queue. */
export function newPart(name: string, server: Server, elements: Elements = "addresses"): Part {
  const link = { counters: new Counters(name), knownFact: () => undefined, learn: () => {} };
  return new Part(ORDINARY, name, elements, server, link, { codes: new Map() });
}
