import { deliverSeen, type SteadyPlan } from "../delivery-run.ts";
import type { Figure } from "../figure.ts";
import { median } from "../median.ts";
import { percentile } from "../percentile.ts";
import type { Round, Workload } from "../workload.ts";

/**
 * Where the time goes between the instant at which a message is wanted, which is the call's plus the delay, and the
 * handler's call.
 *
 * The server's part is seen with `MONITOR`, which takes its time as well; so the sum is a little more than without it.
 */
export const budget: Workload = {
  name: "budget",
  title: "where lateness comes from, at 20 and 2,000 messages/s, 1 worker process",
  async round(round) {
    const seconds = round.isQuick ? 3 : 15;
    return [
      ...(await stages("20/s", { ...PLAN, perSecond: 20, count: 20 * seconds }, round)),
      ...(await stages("2,000/s", { ...PLAN, perSecond: 2000, count: 2000 * seconds }, round)),
    ];
  },
};

/** What a message passes on its way, in this order. */
export const STAGES = [
  "the offer's way to Redis",
  "rounding up to the next millisecond",
  "the timer, and the transfer's way",
  "the way to the handler",
] as const;

type Stage = (typeof STAGES)[number];

/** In milliseconds. */
const DELAY = 500;

const PLAN = { workerProcesses: 1, concurrency: 10, minDelay: DELAY, maxDelay: DELAY };

async function stages(name: string, plan: SteadyPlan, round: Round): Promise<Figure[]> {
  const seen = await deliverSeen(plan, round);
  const whole = seen.map(({ wantedAt, takenAt }) => takenAt - wantedAt).toSorted((a, b) => a - b);
  const late = seen.map(({ deadline, takenAt }) => takenAt - deadline).toSorted((a, b) => a - b);
  const part = (of: (moments: (typeof seen)[number]) => number) => median(seen.map(of));
  const parts: Record<Stage, number> = {
    "the offer's way to Redis": part((one) => one.delayedAt + DELAY - one.wantedAt),
    "rounding up to the next millisecond": part((one) => one.deadline - one.delayedAt - DELAY),
    "the timer, and the transfer's way": part((one) => one.readyAt - one.deadline),
    "the way to the handler": part((one) => one.takenAt - one.readyAt),
  };
  return [
    {
      name: `${name}: lateness from the call, p50`,
      value: percentile(whole, 50),
      unit: "ms",
      goal: { atMost: 2 },
      parts,
      plot: { curve: "stages", x: plan.perSecond },
    },
    {
      name: `${name}: lateness from the call, p99`,
      value: percentile(whole, 99),
      unit: "ms",
      goal: { atMost: 5 },
    },
    { name: `${name}: lateness from the deadline, p50`, value: percentile(late, 50), unit: "ms" },
    { name: `${name}: lateness from the deadline, p99`, value: percentile(late, 99), unit: "ms" },
  ];
}
