import { setTimeout as sleep } from "node:timers/promises";
import { newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { uniqueName } from "../helpers/redis.ts";
import { redisAt } from "../fault/partitions/site-address.ts";
import type { Site } from "../fault/partitions/site.ts";
import type { Wire } from "../fault/partitions/wire.ts";
import type { Result } from "../../scripts/matrix/results.ts";
import { STRIKES, type Scene } from "./attacks.ts";
import type { Cell } from "../../scripts/matrix/cells.ts";
import { now } from "./history.ts";
import { judge, type Verdict } from "./judge.ts";
import { Party } from "./party.ts";
import { CONCURRENCY, LEASE, type Target } from "./task.ts";
import { REMOVED, SET, tickBefore } from "./ticks.ts";

/** Milliseconds until nothing may be left in Redis. Leases of two seconds run out, several times at worst. */
const DRAINED_WITHIN = 40_000;

/** Milliseconds in which a strike has to be over. */
const STRUCK_WITHIN = 90_000;

/** What came of a cell. */
export type Outcome = Verdict & Pick<Result, "strikes">;

export interface CellOptions {
  readonly cell: Cell;
  readonly site: Site;
  readonly wire: Wire;
  readonly program: URL;
  /** The number of the first message. No other run on the same site uses numbers up to a million later. */
  readonly first: number;
  /** How long the attack goes on. */
  readonly seconds: number;
}

/** Runs one cell: messages flow, the attack strikes, everything is drained, and the judge has the last word. */
export async function runCell(options: CellOptions): Promise<Outcome> {
  const { cell, site, wire, program, first, seconds } = options;
  const attack = STRIKES[cell.attack];
  const target: Target = {
    address: site.address,
    queue: cell.queue,
    name: uniqueName("matrix"),
    partitions: site.partitions,
    first,
    since: tickBefore(Date.now()),
  };
  const { redis, end } = redisAt(site.address);
  const line = newLineThatMayFail({ redis, transfer: false });
  const party = await Party.start({
    target,
    program,
    moreDelay: attack.moreDelay ?? 0,
    largeBytes: attack.largeBytes ?? 0,
    shifts: attack.shifts ?? [],
  });
  try {
    const scene: Scene = { site, wire, party, target, line };
    const endAt = now() + seconds * 1000;
    let strikes = 0;
    do {
      party.prepare();
      await bounded(attack.strike(scene, strikes++), `strike ${strikes} of ${cell.attack}`);
      if (attack.every === undefined) break;
      await sleep(attack.every);
    } while (now() < endAt);
    await sleep(Math.max(0, endAt - now()));
    // What hangs is a fault like any other.
    const hanging: string[] = [];
    const note = (error: unknown) => void hanging.push(`1 hangs: ${String(error)}`);
    await party.isFlowing().catch(note);
    await party.stopOffering().catch(note);
    hanging.push(...(await drain(scene)));
    // The clock may have been slewed meanwhile.
    party.history.epoch = Math.max(party.history.epoch, Date.now() - now());
    const verdict = judge(party.history, {
      inHand: CONCURRENCY + 1,
      wasSent: (n) => attack.isHealthy === true || wire.sent.has(`p${n};`),
      lease: attack.breaksConnections === true ? LEASE : undefined,
    });
    return { ...verdict, strikes, faults: [...verdict.faults, ...hanging] };
  } finally {
    await party.end();
    await line.close();
    end();
  }
}

/** Waits until Redis holds no message and no handler runs. Returns what is left. */
async function drain({ party, line, target }: Scene): Promise<string[]> {
  let last = "";
  const schedules =
    target.queue === "scheduled" ? line.getReliableQueue(target.name).schedules : undefined;
  const isEmpty = async () => {
    // A failover may undo the end of the schedules, as it may undo any acknowledged write.
    await schedules?.declare(SET, {}, { revision: REMOVED });
    const { delayed, ready, inFlight, retries, dead } = await line.stats(target.name);
    last = JSON.stringify({ delayed, ready, inFlight, retries, dead });
    return delayed + ready + inFlight + retries + dead === 0 && !party.isBusy;
  };
  try {
    await eventually(isEmpty, { within: DRAINED_WITHIN });
    // A message is nowhere in Redis while its taker has it.
    await sleep(100);
    await eventually(isEmpty, { within: DRAINED_WITHIN });
    return [];
  } catch {
    return [`1 stuck: ${last} after ${DRAINED_WITHIN} ms`];
  }
}

async function bounded(action: Promise<unknown>, what: string): Promise<void> {
  const ending = new AbortController();
  const { signal } = ending;
  const late = sleep(STRUCK_WITHIN, "late", { signal }).catch(() => "");
  try {
    if ((await Promise.race([action, late])) === "late") {
      throw new Error(`${what} is not over after ${STRUCK_WITHIN} ms`);
    }
  } finally {
    ending.abort();
  }
}
