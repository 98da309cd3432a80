import { earliestOf, isForgotten, LOSES_LEASE, nameOfDelivery, type Rule } from "./promises.ts";
import type { Call, Delivery, Story } from "./story.ts";

/**
 * **Nothing is moved during a pause**: what falls due after `pause` has resolved, and all processes have heard of it, is
 * not delivered before `resume` is called. What was ready before may be on its way; but not for longer than a sweep
 * takes. A process whose wake-up is lost goes on until its next sweep.
 */
export const paused: Rule = (story) =>
  story.deliveries.flatMap((delivery) => {
    if (delivery.isEarly || delivery.attempt > 1) return [];
    const offer = story.offers.get(delivery.n);
    const pause = pauseAt(delivery, story);
    if (pause?.ended === undefined || offer === undefined) return [];
    const since = pause.ended;
    const isUnheard = story.faults.some(
      ({ kind, index }) => (kind === "deaf" || kind === "silence") && index < delivery.index,
    );
    if (!isUnheard && earliestOf(offer, story, delivery) > story.latest(since) + ANNOUNCED)
      return [`delivered in a pause since ${since.at} ms: ${nameOfDelivery(delivery)}`];
    if (delivery.at - since.at > LONGEST_SWEEP)
      return [`delivered long after the pause at ${since.at} ms: ${nameOfDelivery(delivery)}`];
    return [];
  });

/**
 * **Nothing is taken during a pause**: a call that begins when its process knows of the pause gets nothing. Unless a fault
 * has met the process, it knows it soon.
 */
export const takenInPause: Rule = (story) =>
  story.deliveries.flatMap((delivery) => {
    const since = pauseAt(delivery, story)?.ended;
    if (since === undefined || delivery.attempt > 1 || delivery.isEarly) return [];
    const { by } = delivery;
    if (story.isHit(by, ["deaf"], { at: 0 }, delivery)) return [];
    if (story.isHit(by, LOSES_LEASE, { at: since.at - RECOVERY }, delivery)) return [];
    const taking = story
      .callsOf("take", "takeMany", "poll")
      .find(
        ({ begun, ended, ...call }) =>
          call.by === by &&
          begun.index < delivery.index &&
          (ended === undefined || ended.index >= delivery.index),
      );
    if (taking === undefined || taking.begun.at < since.at + HEARD) return [];
    return [`taken in a pause since ${since.at} ms: ${nameOfDelivery(delivery)}`];
  });

/** Milliseconds that the announcement may be on its way to the other processes. */
const ANNOUNCED = 20;

/** Milliseconds until a process knows of a pause. */
const HEARD = 1000;

/** Milliseconds that it may take until a process is connected again. */
const RECOVERY = 10_000;

/** The pause that certainly held when the message was delivered. */
function pauseAt(delivery: Delivery, story: Story): Call | undefined {
  const resumes = story.callsOf("resume");
  return story.callsOf("pause").find((pause) => {
    const { ended } = pause;
    if (ended === undefined || pause.error !== undefined || ended.index > delivery.index)
      return false;
    if (isForgotten(pause, story)) return false;
    return !resumes.some(
      (resume) =>
        resume.begun.index < delivery.index &&
        (resume.ended === undefined || resume.ended.index > pause.begun.index),
    );
  });
}

/** A sweep looks every 30 s, give or take a fifth, and stalls and trouble come on top. */
const LONGEST_SWEEP = 60_000;
