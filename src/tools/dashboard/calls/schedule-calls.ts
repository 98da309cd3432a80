import { occurrenceKey } from "../../../inside.ts";
import { stateOfSchedule, type Schedule } from "../../view/schedule-state.ts";
import { HttpError } from "../http/reply.ts";
import { rowPayload, type ApiCall } from "./api-call.ts";

/** The most schedules to show, and the most next ticks of each. */
const MOST = 500;
const MOST_TICKS = 10;

/** Of how many schedules the payload of the next run is shown, on demand. */
const MOST_PAYLOADS = 100;

/**
 * `GET queues/:q/schedules`: the schedules of a queue, the most urgent and the next ones first, with the revision in which
 * their set was declared last; with `payload=1` the payload of the next run, if it is placed.
 */
export async function listSchedules(call: ApiCall): Promise<unknown> {
  const { wantsPayload, signal } = call;
  const { messages, stats } = await call.open();
  const { serverTime: at, isPaused } = stats;
  const found: Schedule[] = [];
  let isMore = false;
  for await (const one of messages.schedules.list({ signal })) {
    isMore = found.length === MOST;
    if (isMore) break;
    found.push(one);
  }
  const revisions = new Map<string, number | undefined>();
  for (const set of new Set(found.flatMap((one) => one.set ?? []))) {
    revisions.set(set, await messages.schedules.revisionOf(set, { signal }));
  }
  const payloads = new Map<string, unknown>();
  for (const { name, next } of wantsPayload ? found.slice(0, MOST_PAYLOADS) : []) {
    const [tick] = next;
    if (tick === undefined) continue;
    const run = await messages.get(occurrenceKey(name, tick), { signal });
    if (run !== undefined) payloads.set(name, rowPayload(run.payload) ?? null);
  }
  const schedules = found
    .map((one) => ({
      ...one,
      next: one.next.slice(0, MOST_TICKS),
      state: stateOfSchedule(one, at, isPaused),
      revision: one.set === undefined ? undefined : revisions.get(one.set),
      ...(payloads.has(one.name) && { payload: payloads.get(one.name) }),
    }))
    .toSorted((a, b) => urgency(a) - urgency(b) || (a.name < b.name ? -1 : 1));
  return { at, schedules, isMore };
}

/** Unplanned schedules first, then by their next tick. */
function urgency({ state, next }: { state: string; next: readonly number[] }): number {
  return state === "unplanned" ? -1 : (next[0] ?? Infinity);
}

/** `POST queues/:q/schedules/change`: runs, pauses, resumes or removes a schedule. */
export async function changeSchedule(call: ApiCall): Promise<unknown> {
  const { name, verb } = call.schedule;
  const { schedules } = (await call.open()).messages;
  const options = { signal: call.signal };
  const act = {
    run: async () => (await schedules.trigger(name, options)) !== undefined,
    pause: () => schedules.pause(name, options),
    resume: () => schedules.resume(name, options),
    remove: () => schedules.remove(name, options),
  }[verb];
  try {
    return { done: await act() };
  } catch (error) {
    // What only a process can do that has declared the schedule.
    if (error instanceof TypeError) throw new HttpError(409, error.message);
    throw error;
  }
}
