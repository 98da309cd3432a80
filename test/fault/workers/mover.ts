/** A process that moves the due messages of a queue, until it is killed. */
import { Delayline } from "../../../src/index.ts";

const { REDIS = "", QUEUE = "" } = process.env;
const line = new Delayline({ redis: REDIS });
line.on("error", (error) => process.send?.({ error: error.message }));
line.getDelayedQueue(QUEUE);
process.send?.("ready");
