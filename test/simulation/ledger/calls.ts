import { LOSES_LEASE, type Rule } from "./promises.ts";
import type { FaultKind } from "../sim.ts";
import type { Call, Story } from "./story.ts";

/** **Every call settles**, unless its process crashed; and within `callTimeout`, unless it waits or works in steps. */
export const settles: Rule = (story, { callTimeout = 5000 }) =>
  story.calls.flatMap((call) => {
    const { by, verb, begun, ended } = call;
    if (story.isHit(by, ["crash"], { at: 0 })) return [];
    if (verb === "subscribe") return [];
    if (ended === undefined) return [`hangs: ${verb} of ${by}, called at ${begun.at} ms`];
    const wait = call.args["timeout"] as number | undefined;
    if (WAITS.includes(verb) && wait === undefined) return [];
    // A call whose reply comes bit by bit is awaited longer.
    const held = story
      .faultsOn(by, ["stall", "trickle"], begun, ended)
      .reduce((sum, fault) => sum + fault.until - fault.at, 0);
    const limit = (STEPS[verb] ?? 1) * callTimeout + (wait ?? 0) + SLACK + held;
    const took = ended.at - begun.at;
    return took > limit ? [`slow: ${verb} of ${by} took ${took} ms, not ${limit} at most`] : [];
  });

/** The calls that wait as long as it takes. */
const WAITS = ["take", "poll", "takeMany", "setPartitions"];

/** The calls that work in steps, each of which has the time of a call. */
const STEPS: Readonly<Record<string, number>> = {
  close: 6,
  closeQueue: 6,
  redrive: 4,
  deadLetters: 4,
  makePlain: 6,
  pause: 2,
  resume: 2,
  // Passes over what is ready and dead, in each partition.
  revoke: 6,
  stage: 6,
};

/** What timers that fire late may add. */
const SLACK = 2000;

/** **Errors have a reason**: without a fault no call is refused, and what a call rejects with is an error of the library. */
export const errors: Rule = (story) =>
  story.calls.flatMap((call) => {
    if (call.error === undefined) return [];
    const what = `${call.verb} of ${call.by} at ${call.begun.at} ms: ${call.error} (${call.message})`;
    if (!KNOWN.includes(call.error)) return [`unknown error: ${what}`];
    const isAborted = call.args["isImpatient"] === true;
    if (REFUSALS.includes(call.error) && !isAborted && !hasReason(call, story))
      return [`error: ${what}`];
    return [];
  });

/** **Trouble has a reason**: an `error` event without a fault that met its process is a mistake. */
export const troubles: Rule = (story, { expectedTroubles = [] }) =>
  story.troubles.flatMap(({ code, by, at, message }) => {
    if (expectedTroubles.includes(code)) return [];
    if (story.isHit(by, TROUBLING, { at: at - TROUBLE }, { at })) return [];
    // A step of the clock ends the lease of an exclusive consumer. Who takes over closes its blocking connection.
    const isClosed = message.endsWith("Connection is closed.");
    if (isClosed && story.isHit(by, ["clock-step"], { at: at - TROUBLE }, { at })) return [];
    return [`trouble of ${by} at ${at} ms: ${code} (${message})`];
  });

function hasReason({ begun, ended, by }: Call, story: Story): boolean {
  return story.isHit(by, TROUBLING, { at: begun.at - TROUBLE }, ended);
}

const TROUBLING: readonly FaultKind[] = [...LOSES_LEASE, "script-flush"];

/** How long a fault is felt: the pauses between attempts to connect, and timeouts of calls behind which others wait. */
const TROUBLE = 15_000;

/** Codes that say that Redis did not do as it was told. */
const REFUSALS = ["REDIS", "OFFER", "OFFER_MANY"];

const KNOWN = [...REFUSALS, "CLOSED", "AbortError"];
