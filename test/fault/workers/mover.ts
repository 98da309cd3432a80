/** A process that moves the due messages of a queue until it is killed. */
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline } from "../../../src/index.ts";

endWithParent();
const { REDIS = "", QUEUE = "" } = process.env;
const line = new Delayline({ redis: REDIS });
line.on("error", (error) => void tell({ error: error.message }));
line.getDelayedQueue(QUEUE);
void tell("ready");
