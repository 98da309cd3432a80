import { setTimeout as sleep } from "node:timers/promises";
import { BenchServer } from "./bench-server.ts";
import { Crew, type CrewPlan } from "./crew.ts";
import { joinDeliveries, workerTimeOf, type Deliveries } from "./deliveries.ts";
import { LateStartError } from "./late-start.ts";
import { Meter, type Cost } from "./meter.ts";
import { Moments } from "./moments.ts";
import { loadPeer, type PeerName } from "./peers/load.ts";
import { Program } from "./program.ts";
import type { ProducerMethods } from "./programs/producer.ts";
import type { ContestRound, Round } from "./workload.ts";

/** A producer process, worker processes, and the messages between them. */
export interface DeliveryPlan extends CrewPlan {
  /** Defaults to Delayline. */
  readonly peer?: PeerName;
  readonly count: number;
  readonly minDelay: number;
  readonly maxDelay: number;
  /** Offers per second. Defaults to as many as 100 offers in flight allow. */
  readonly perSecond?: number;
}

/** A plan that says how many offers there are in a second. */
export type SteadyPlan = DeliveryPlan & { readonly perSecond: number };

/** The measurements between the first offer and the last message taken. */
export interface DeliveryResult extends Deliveries, Cost {
  /** Offers per second. */
  readonly offerRate: number;
  /** The workers' processor time for a message, in microseconds. */
  readonly workerTime: number;
}

/** Starts everything, warms it up with messages that do not count, and carries out the plan. */
export async function deliver(plan: DeliveryPlan, round: Round): Promise<DeliveryResult> {
  const { count, minDelay, maxDelay, perSecond } = plan;
  return await warmedUp(plan, round, async ({ server, producer, crew, first }) => {
    round.progress(`offering ${count} messages`);
    const meter = await Meter.start(server);
    const offers = { first, count, due: { minDelay, maxDelay } };
    const offered = await (perSecond === undefined
      ? producer.call("offerBusily", offers, 100)
      : producer.call("offerSteadily", offers, perSecond));
    round.progress("waiting for the last message");
    const taken = await crew.taken(count, maxDelay);
    return {
      ...(await meter.read()),
      ...joinDeliveries(offered, first, taken),
      offerRate: (count / offered.duration) * 1000,
      workerTime: workerTimeOf(taken),
    };
  });
}

/** The life of a message, each instant by the server's clock (epoch ms). */
export interface Seen {
  /** The offer's call plus the delay. */
  readonly wantedAt: number;
  readonly delayedAt: number;
  readonly deadline: number;
  readonly readyAt: number;
  /** The handler's call. */
  readonly takenAt: number;
}

/** As {@link deliver}, and follows each message on its way. Leaves out those of which not all was seen. */
export async function deliverSeen(plan: SteadyPlan, round: Round): Promise<readonly Seen[]> {
  const { count, minDelay, maxDelay, perSecond } = plan;
  return await warmedUp(plan, round, async ({ server, producer, crew, first }) => {
    round.progress(`offering ${count} messages at ${perSecond}/s`);
    const moments = await Moments.start(server.redis);
    const due = { minDelay, maxDelay };
    const offered = await producer.call("offerSteadily", { first, count, due }, perSecond);
    const taken = await crew.taken(count, maxDelay);
    moments.end();
    const seen: Seen[] = [];
    for (const { numbers, takenAt } of taken) {
      numbers.forEach((number, k) => {
        const [delayedAt, readyAt] = [moments.delayedAt[number], moments.readyAt[number]];
        if (delayedAt === undefined || readyAt === undefined) return;
        const wantedAt = offered.notBefore[number - first] ?? NaN;
        const deadline = offered.deadlines[number - first] ?? NaN;
        seen.push({ wantedAt, delayedAt, deadline, readyAt, takenAt: takenAt[k] ?? NaN });
      });
    }
    if (seen.length < count / 2) throw new Error(`only ${seen.length} of ${count} were seen`);
    return seen;
  });
}

/** Messages that are all offered before the first is due, so that offers and deliveries can be measured separately. */
export interface LaterPlan extends CrewPlan {
  readonly peer: PeerName;
  readonly count: number;
  /** Offers per second, one message each. */
  readonly offersPerSecond: number;
  /** Messages that fall due per second. */
  readonly duePerSecond: number;
}

export interface LaterResult extends Deliveries {
  readonly offering: Cost;
  readonly delivering: Cost;
}

/** Starts everything, warms it up, and carries out the plan. */
export async function deliverLater(plan: LaterPlan, round: ContestRound): Promise<LaterResult> {
  const { peer, count, offersPerSecond, duePerSecond } = plan;
  const { delayedKey } = await loadPeer(peer);
  return await warmedUp(plan, round, async ({ server, producer, crew, first }) => {
    round.progress(`offering ${count} messages`);
    const meter = await Meter.start(server);
    const { serverTime } = await server.look(delayedKey);
    const from = Math.ceil(serverTime + ((count / offersPerSecond) * 1100 + 500) * round.patience);
    const window = (count / duePerSecond) * 1000;
    const due = { from, to: from + window };
    const plain = { first, count, due };
    const offered = await producer.call("offerSteadily", plain, offersPerSecond);
    const offering = await meter.read();
    const left = from - (await server.look(delayedKey)).serverTime;
    if (left < 50) throw new LateStartError(50 - left);
    await sleep(left - 50);
    round.progress("waiting for the last message");
    const nextMeter = await Meter.start(server);
    const taken = await crew.taken(count, window);
    const delivering = await nextMeter.read();
    return { offering, delivering, ...joinDeliveries(offered, first, taken) };
  });
}

interface Cast {
  readonly server: BenchServer;
  readonly producer: Program<ProducerMethods>;
  readonly crew: Crew;
  /** The number of the first message that counts. */
  readonly first: number;
}

async function warmedUp<Result>(
  plan: CrewPlan & { readonly peer?: PeerName; readonly count: number },
  { progress }: Round,
  work: (cast: Cast) => Promise<Result>,
): Promise<Result> {
  const { peer = "delayline", count } = plan;
  const starting = Promise.all([Program.start<ProducerMethods>("producer"), Crew.start(plan)]);
  await using server = await BenchServer.start();
  const programs = await starting;
  await using producer = programs[0];
  await using crew = programs[1];
  await producer.call("open", peer, server.url);
  await crew.open(peer, server.url);

  progress("warming up");
  const warmUp = { first: 0, count: Math.ceil(count / 20), due: { minDelay: 0, maxDelay: 500 } };
  await producer.call("offerBusily", warmUp, 10);
  await crew.taken(warmUp.count);
  await crew.reset();
  const result = await work({ server, producer, crew, first: warmUp.count });
  await Promise.all([crew.close(), producer.call("close")]);
  return result;
}
