import { BenchServer, type ProcessorTime } from "./bench-server.ts";
import type { CommandStats } from "./command-stats.ts";
import { Crew, type CrewPlan } from "./crew.ts";
import { joinDeliveries, type Deliveries } from "./deliveries.ts";
import type { PeerName } from "./peers/load.ts";
import { Program } from "./program.ts";
import type { ProducerMethods } from "./programs/producer.ts";
import type { Round } from "./workload.ts";

/** A producer process, worker processes, and what the one offers to the others. */
export interface DeliveryPlan extends CrewPlan {
  /** Defaults to Delayline. */
  readonly peer?: PeerName;
  readonly count: number;
  readonly minDelay: number;
  readonly maxDelay: number;
  /** How fast to offer; without it, as fast as 100 offers in flight can be. */
  readonly perSecond?: number;
}

/** What was seen between the first offer and the last message taken. */
export interface DeliveryResult extends Deliveries {
  readonly stats: CommandStats;
  /** How long the server used a processor. */
  readonly processorTime: ProcessorTime;
  /** Offers per second. */
  readonly offerRate: number;
}

/**
 * Starts everything, warms it up with some messages that do not count, and carries out the plan.
 */
export async function deliver(plan: DeliveryPlan, { progress }: Round): Promise<DeliveryResult> {
  const { peer = "delayline", count, minDelay, maxDelay, perSecond } = plan;
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

  progress(`offering ${count} messages`);
  await server.resetStats();
  const before = await server.processorTime();
  const first = warmUp.count;
  const offers = { first, count, due: { minDelay, maxDelay } };
  const offered = await (perSecond === undefined
    ? producer.call("offerBusily", offers, 100)
    : producer.call("offerSteadily", offers, perSecond));
  progress("waiting for the last message");
  const taken = await crew.taken(count, maxDelay);
  const stats = await server.stats();
  const after = await server.processorTime();
  const deliveries = joinDeliveries(offered, first, taken);
  const result = {
    ...deliveries,
    stats,
    processorTime: {
      user: after.user - before.user,
      system: after.system - before.system,
      total: after.total - before.total,
    },
    offerRate: (count / offered.duration) * 1000,
  };
  await Promise.all([crew.close(), producer.call("close")]);
  return result;
}
