import { expect } from "vitest";
import { newLine, type TestLine } from "./delayline.ts";
import { inShort } from "./diagnosis.ts";
import { keyspaceOf } from "./keyspace.ts";
import { doctor } from "./pasting.ts";
import type { useSoundServer } from "./sound-server.ts";

/** What tests of broken queues do on their server. */
export function brokenQueuesOn(server: ReturnType<typeof useSoundServer>) {
  return {
    /**
     * What the doctor finds. It has to leave every key as it was. A consumer that reads meanwhile changes its stream, so
     * the doctor looks up to three times.
     */
    examined: async () => {
      for (let looks = 1; ; looks++) {
        const before = await keyspaceOf(server.admin);
        const { findings } = await doctor(server.url);
        const after = await keyspaceOf(server.admin);
        if (looks < 3 && JSON.stringify(after) !== JSON.stringify(before)) continue;
        expect(after).toEqual(before);
        return findings;
      }
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
