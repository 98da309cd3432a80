import { expect } from "vitest";
import { newLine, type TestLine } from "./delayline.ts";
import { inShort } from "./diagnosis.ts";
import { keyspaceOf } from "./keyspace.ts";
import { doctor } from "./pasting.ts";
import type { useSoundServer } from "./sound-server.ts";

/** What tests of broken queues do on their server. */
export function brokenQueuesOn(server: ReturnType<typeof useSoundServer>) {
  return {
    /** What the doctor finds. It has to leave every key as it was. */
    examined: async () => {
      const before = await keyspaceOf(server.admin);
      const { findings } = await doctor(server.url);
      expect(await keyspaceOf(server.admin)).toEqual(before);
      return findings;
    },
    expectSound: async (): Promise<void> => {
      expect(inShort((await doctor(server.url)).findings)).toEqual([]);
    },
    /** A worker: it moves the queue, and takes from it. */
    startWorker: (): void => {
      const line = newLine({ redis: server.url, codec: "string" });
      line.getBlockingQueue("orders").subscribe(() => {});
    },
    /** A client that only offers. */
    newProducer: (): TestLine => {
      return newLine({ redis: server.url, transfer: false, codec: "string" });
    },
  };
}
