import type { ScheduleOptions, ScheduleTick } from "../../src/index.ts";
import type { Offered } from "./history.ts";
import type { Target } from "./task.ts";

/*
 * The messages of a scheduled queue: each tick has a number, which its payload says, and from which its instant follows.
 * So the judge knows which messages have to come without having heard of them.
 */

/** Milliseconds between two ticks of a schedule. */
const EVERY = 100;

/** How many schedules there are. Together they offer 100 messages a second. */
const COUNT = 10;

/** Milliseconds between the ticks of one schedule and those of the next. */
const SHIFT = EVERY / COUNT;

/** The set of all schedules. */
export const SET = "matrix";

/** The revision of the schedules, and that of none. */
export const [DECLARED, REMOVED] = [1, 2];

type Numbered = Pick<Target, "first" | "since">;

/** The instant of a tick (epoch ms). */
function instantOf({ first, since }: Numbered, n: number): number {
  return since + (n - first) * SHIFT;
}

/** The declarations of all schedules. Every late tick is to come. */
export function declarationsOf({ first, since }: Numbered) {
  const payload = ({ at }: ScheduleTick) =>
    `r${first + Math.round((at.getTime() - since) / SHIFT)};`;
  const names = Array.from({ length: COUNT }, (_, i) => `s${i}`);
  return Object.fromEntries(
    names.map((name, i): [string, ScheduleOptions<string>] => [
      name,
      { every: EVERY, phase: i * SHIFT, misfire: "all", maxCatchUp: 1_000_000, payload },
    ]),
  );
}

/** An instant (epoch ms) at which the first schedule has a tick. */
export function tickBefore(instant: number): number {
  return instant - (instant % EVERY);
}

/** A tick as the judge sees an offer: its schedule was stored long before. `epoch` adds to the monotonic clock. */
export function offeredTick(target: Numbered, n: number, epoch: number): Offered {
  const deadline = instantOf(target, n);
  const key = `s${n % COUNT}`;
  return { n, key, sentAt: deadline - epoch, delay: 0, deadline, acknowledgedAt: 0 };
}

/** The numbers of the ticks between two instants (epoch ms). */
export function ticksBetween({ first, since }: Numbered, from: number, to: number): number[] {
  const [least, most] = [Math.ceil((from - since) / SHIFT), Math.floor((to - since) / SHIFT)];
  return Array.from({ length: Math.max(0, most - least + 1) }, (_, i) => first + least + i);
}
