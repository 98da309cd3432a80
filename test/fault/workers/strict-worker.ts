/**
 * A process that consumes a queue exclusively and in strict order. The message "bad" fails each time. A list in Redis
 * gets each delivery: the payload, the attempt, the failures before, and when the handler began on the server's clock.
 *
 * It says "loaded", begins when it hears "go", closes when it hears "leave", and says "left". When the failure of an
 * attempt is in Redis it says "failed" and the attempt, or kills itself if that is the attempt `DIES_AFTER`.
 */
import { Redis } from "ioredis";
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline, type ReliableQueueOptions } from "../../../src/index.ts";

endWithParent();
const { REDIS = "", QUEUE = "", OPTIONS = "{}", DIES_AFTER = "0" } = process.env;
let line: Delayline | undefined;

function go(): void {
  const ledger = new Redis(REDIS, { maxRetriesPerRequest: null });
  line = new Delayline({ redis: REDIS, codec: "json" });
  line.on("error", () => {});
  let last = 0;
  const queue = line.getReliableQueue<string>(
    QUEUE,
    JSON.parse(OPTIONS) as ReliableQueueOptions<string>,
  );
  queue.subscribe(
    async (payload, { attempt, failures }) => {
      const [seconds, micros] = await ledger.time();
      const at = Number(seconds) * 1000 + Number(micros) / 1000;
      await ledger.rpush(`${QUEUE}:log`, JSON.stringify({ payload, attempt, failures, at }));
      last = attempt;
      if (payload === "bad") throw new Error("never");
    },
    {
      // Called when the failure is in Redis.
      onError: () => {
        if (last === Number(DIES_AFTER)) process.kill(process.pid, "SIGKILL");
        void tell(`failed ${last}`);
      },
    },
  );
}

async function leave(): Promise<void> {
  await line?.close();
  await tell("left");
}

process.on("message", (word) => {
  if (word === "go") go();
  else void leave();
});
void tell("loaded");
