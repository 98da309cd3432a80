import { deliver, type DeliveryPlan, type DeliveryResult } from "../delivery-run.ts";
import { latenessFigures, promises } from "../deliveries.ts";
import type { Figure, Goal } from "../figure.ts";
import type { Round, Workload } from "../workload.ts";

/** One worker under a steady load. */
export const lateness: Workload = {
  name: "lateness",
  title: "2,000 messages/s for 20 s, delays of 1 to 5 s, 1 worker process",
  quickTitle: "2,000 messages/s for 2 s, delays of 0.2 to 1 s, 1 worker process",
  async round(round) {
    const { result, count } = await steadily(round, { workerProcesses: 1, concurrency: 10 });
    return [
      ...promises(result),
      ...latenessFigures(result, { p50: 1, p99: 4 }),
      ...cost(result, count, { commands: { atMost: 10 } }),
    ];
  },
};

/** Many workers under the same load: how much work do they cause for each other? */
export const workers: Workload = {
  name: "workers",
  title: "the same with 20 workers, 5 in each of 4 processes",
  async round(round) {
    const crew = { workerProcesses: 4, clientsPerProcess: 5, concurrency: 10 };
    const { result, count } = await steadily(round, crew);
    return [
      ...promises(result),
      ...latenessFigures(result),
      ...cost(result, count, { commands: { atMost: 12 }, transfers: { atMost: 1.5 } }),
    ];
  },
};

/** One message now and then: nothing else wakes any client. */
export const idle: Workload = {
  name: "idle",
  title: "1 message every 50 ms, delays of 0.2 to 1 s, 1 worker process",
  async round(round) {
    const result = await deliver(
      {
        workerProcesses: 1,
        concurrency: 10,
        count: round.isQuick ? 60 : 400,
        minDelay: 200,
        maxDelay: 1000,
        perSecond: 20,
      },
      round,
    );
    return [...promises(result), ...latenessFigures(result)];
  },
};

type Crew = Pick<DeliveryPlan, "workerProcesses" | "clientsPerProcess" | "concurrency">;

async function steadily(round: Round, crew: Crew) {
  const perSecond = 2000;
  const count = perSecond * (round.isQuick ? 2 : 20);
  const [minDelay, maxDelay] = round.isQuick ? [200, 1000] : [1000, 5000];
  const result = await deliver({ ...crew, count, minDelay, maxDelay, perSecond }, round);
  return { result, count };
}

function cost(
  { stats, offerRate }: DeliveryResult,
  count: number,
  goals: { readonly commands: Goal; readonly transfers?: Goal },
): Figure[] {
  return [
    {
      name: "Redis commands per message",
      value: stats.total / count,
      unit: "",
      goal: goals.commands,
      parts: stats.perMessage(count),
    },
    {
      name: "runs of the transfer script per message",
      value: stats.transferCount / count,
      unit: "",
      ...(goals.transfers && { goal: goals.transfers }),
    },
    { name: "offered", value: offerRate, unit: "/s" },
  ];
}
