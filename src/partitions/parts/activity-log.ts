import { readActivity, noteDeed, type Activity } from "../../queue/activity.ts";
import type { Call } from "../../queue/call.ts";
import { dropOf, type Drop } from "../../queue/drops.ts";
import { ORDINARY } from "../ring/fact.ts";
import type { Part } from "./part.ts";

/** The parts of a queue. */
interface PartsOfQueue {
  readonly first: Part;
  readonly ordinary: Part;
  all(call?: Call): Promise<readonly Part[]>;
}

/** What was done to a queue by people and processes, and which messages it dropped, as Redis remembers it. */
export class ActivityLog {
  readonly #parts: PartsOfQueue;

  constructor(parts: PartsOfQueue) {
    this.#parts = parts;
  }

  /** Notes what this process has done. Never rejects. */
  async note(deed: Parameters<typeof noteDeed>[1]): Promise<void> {
    await noteDeed(this.#parts.first.queue, deed);
  }

  /** What was done, the newest first. The log is beside the first part; what was done before that was a part, beside the ordinary queue. */
  async read(call?: Call): Promise<Activity[]> {
    const logs = (await this.#all(call)).map(({ queue }) => readActivity(queue, call));
    return (await Promise.all(logs)).flat().toSorted((one, other) => other.at - one.at);
  }

  /** The last time that a message was dropped when it was due; undefined if none is remembered. */
  async dropOf(idOrKey: string, call?: Call): Promise<Drop | undefined> {
    const found = (await this.#all(call)).map(({ queue }) => dropOf(queue, idOrKey, call));
    const drops = (await Promise.all(found)).filter((drop) => drop !== undefined);
    return drops.toSorted((one, other) => other.at - one.at)[0];
  }

  async #all(call?: Call): Promise<readonly Part[]> {
    const parts = await this.#parts.all(call);
    const hasOrdinary = parts.some(({ partition }) => partition === ORDINARY);
    return hasOrdinary ? parts : [this.#parts.ordinary, ...parts];
  }
}
