import { deliver } from "../delivery-run.ts";
import type { Figure } from "../figure.ts";
import { percentile } from "../percentile.ts";
import type { Contest, ContestRound } from "../workload.ts";
import { processorParts } from "./workers.ts";

/** One worker that is nearly idle, has some work, and is busy. */
export const lateness: Contest = {
  name: "lateness",
  title: "10, 200 and 2,000 messages/s with delays of 0.5 to 2.5 s, 1 worker",
  async round(round) {
    const figures: Figure[] = [];
    for (const perSecond of [10, 200, 2000]) figures.push(...(await atRate(perSecond, round)));
    return figures;
  },
};

async function atRate(perSecond: number, round: ContestRound): Promise<Figure[]> {
  const { peer, isQuick, progress } = round;
  const count = Math.max(100, perSecond * (isQuick ? 2 : 8));
  const rate = `${perSecond.toLocaleString("en")}/s`;
  const result = await deliver(
    {
      peer,
      workerProcesses: 1,
      concurrency: 50,
      count,
      minDelay: 500,
      maxDelay: 2500,
      perSecond,
    },
    { ...round, progress: (doing) => progress(`${rate}: ${doing}`) },
  );
  // A library that counts from its producer's clock needs no trip to Redis for the lateness from the call.
  const { lateness: fromDeadline, latenessFromCall: fromCall } = result;
  const figures: Figure[] = [
    { name: "lost", value: result.lost, unit: "" },
    { name: "lateness p50", value: percentile(fromDeadline, 50), unit: "ms" },
    { name: "lateness p99", value: percentile(fromDeadline, 99), unit: "ms" },
    { name: "lateness from the call p50", value: percentile(fromCall, 50), unit: "ms" },
    { name: "lateness from the call p99", value: percentile(fromCall, 99), unit: "ms" },
    { name: "worker's processor time per message", value: result.workerTime, unit: "us" },
    {
      name: "Redis processor time per message",
      value: result.processorTime.total / count,
      unit: "us",
      parts: processorParts(result, count),
    },
    { name: "Redis commands per message", value: result.stats.total / count, unit: "" },
  ];
  return figures.map((figure) => ({ ...figure, name: `${figure.name}, ${rate}` }));
}
