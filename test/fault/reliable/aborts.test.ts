import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { ReliableQueue } from "../../../src/index.ts";
import { giveBackEntries } from "../../../src/lua/reliable/deliveries.ts";
import type { ScriptEvent } from "../../../src/lua/script.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { MESSAGES, RELIABLE_MESSAGES } from "./crew.ts";
import { upTo } from "../../helpers/numbers.ts";

/*
 * Takes that are aborted just as their message arrives. The message is then either taken, or goes back as if it had not
 * been delivered. It is never lost, and never stuck in flight.
 */

/** The window in milliseconds around the earliest arrival in which the abort falls. */
const SPREAD = 3;

/** Each taker has a queue of its own, so the arriving message is its own. */
const TAKERS = 4;
const TAKES_EACH = Math.ceil(MESSAGES / 4 / TAKERS);
const TAKES = TAKES_EACH * TAKERS;

/** Waits busily for less than a millisecond: timers are too coarse. */
function spinUntil(instant: number): void {
  while (performance.now() < instant);
}

/** Aborts at an instant of `performance.now()`. */
async function abortAt(instant: number, controller: AbortController, reason: Error) {
  await sleep(Math.max(0, instant - performance.now() - 1));
  spinUntil(instant);
  controller.abort(reason);
}

/** Offers a message, takes, and aborts at about its arrival. Returns what was taken all the same. */
async function takeAndAbort(queue: ReliableQueue<number>, id: number, arrival: { after: number }) {
  const { deadline } = await queue.offer(id, 5);
  // Both clocks are this machine's.
  const dueAt = performance.now() + deadline - Date.now();
  const controller = new AbortController();
  const reason = new Error("changed my mind");
  const take = queue.take({ signal: controller.signal });
  const at = dueAt + arrival.after + (Math.random() - 0.5) * SPREAD;
  const aborting = abortAt(at, controller, reason);
  try {
    const delivery = await take;
    // Adapts, so that half of the aborts come too late, however fast the machine is.
    arrival.after -= 0.1;
    return delivery;
  } catch (error) {
    expect(error).toBe(reason);
    arrival.after += 0.1;
    return undefined;
  } finally {
    await aborting;
  }
}

/** Counts how often messages go back. */
function watchReturns(): { count: number } {
  const returns = { count: 0 };
  const onScript = (message: unknown) => {
    if ((message as ScriptEvent).script === giveBackEntries.name) returns.count++;
  };
  subscribe("delayline:script", onScript);
  onTestFinished(() => void unsubscribe("delayline:script", onScript));
  return returns;
}

test(
  `${TAKES} takes are aborted as their message arrives: none is lost, none gets stuck`,
  async () => {
    const redis = newRedis();
    const returns = watchReturns();
    const counts = { taken: 0, aborted: 0 };
    const run = async (count: number): Promise<void> => {
      const name = uniqueName();
      const { stream } = queueKeys(name);
      const queue = newLine({ codec: "json" }).getReliableQueue<number>(name);
      const arrival = { after: 2 };
      const received: number[] = [];
      for (const id of upTo(count)) {
        const taken = await takeAndAbort(queue, id, arrival);
        counts[taken === undefined ? "aborted" : "taken"]++;
        // Half of the time nobody waits for a moment: a message that arrives then has to go back.
        if (taken === undefined && Math.random() < 0.5) await sleep(SPREAD);
        const delivery = taken ?? (await queue.take({ signal: AbortSignal.timeout(30_000) }));
        expect(delivery.attempt).toBe(1);
        received.push(delivery.payload);
        expect(await delivery.ack()).toBe(true);
      }
      expect(received).toEqual(upTo(count));
      expect(await redis.xlen(stream)).toBe(0);
      expect(await redis.xpending(stream, "default")).toEqual([0, null, null, null]);
    };
    await Promise.all(upTo(TAKERS).map(() => run(TAKES_EACH)));

    if (RELIABLE_MESSAGES !== undefined) console.log({ ...counts, returned: returns.count });
    // Each of these has happened.
    for (const count of [...Object.values(counts), returns.count]) {
      expect(count).toBeGreaterThan(TAKES / 100);
    }
  },
  TAKES * 50 + 30_000,
);
