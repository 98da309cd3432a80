/**
 * A process that changes the number of partitions of a queue, and is killed while it does. It does nothing else: it
 * offers, transfers and takes no messages.
 *
 * It says "loaded". When it hears a number it begins, and says "moved" once it has migrated `AFTER` messages.
 */
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline } from "../../../src/index.ts";

endWithParent();
const { REDIS = "", QUEUE = "", AFTER = "1" } = process.env;
const line = new Delayline({ redis: REDIS, transfer: false });
line.on("error", () => {});
let isTold = false;
process.on("message", (count: number) => {
  void line
    .setPartitions(QUEUE, count, {
      onProgress: ({ moved }) => {
        if (moved < Number(AFTER) || isTold) return;
        isTold = true;
        // It says so and dies before its next step.
        process.send?.("moved");
        process.kill(process.pid, "SIGKILL");
      },
    })
    .then(() => tell("changed"));
});
void tell("loaded");
