/** A process that declares schedules, plans them and moves their messages until it is killed. */
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline } from "../../../src/index.ts";

endWithParent();
const { REDIS = "", QUEUE = "", EVERY = "", NAMES = "", PARTITIONS } = process.env;
const line = new Delayline({ redis: REDIS });
line.on("error", (error) => void tell({ error: error.message }));
const partitions = PARTITIONS === undefined ? {} : { partitions: Number(PARTITIONS) };
const { schedules } = line.getDelayedQueue<string>(QUEUE, { codec: "string", ...partitions });
const payload = ({ name, at }: { name: string; at: Date }) => `${name} ${at.getTime()}`;
const options = { every: Number(EVERY), misfire: "all", maxCatchUp: 1_000_000, payload } as const;
const declared = Object.fromEntries(NAMES.split(",").map((name) => [name, options]));

async function declare(): Promise<void> {
  for (;;) {
    try {
      await schedules.declare("storm", declared, { revision: 1 });
      return;
    } catch (error) {
      void tell({ error: String(error) });
    }
  }
}

void declare().then(() => tell("ready"));
