import { earliestOf, isForgotten, nameOfDelivery, type Rule } from "./promises.ts";
import type { Call, Delivery, Story } from "./story.ts";

/**
 * **Nothing is moved during a pause**: what falls due after `pause` has resolved is not delivered before `resume` is
 * called. What was ready before may be on its way; but not for longer than a sweep takes.
 */
export const paused: Rule = (story) =>
  story.deliveries.flatMap((delivery) => {
    if (delivery.isEarly || delivery.attempt > 1) return [];
    const offer = story.offers.get(delivery.n);
    const pause = pauseAt(delivery, story);
    if (pause?.ended === undefined || offer === undefined) return [];
    const since = pause.ended;
    if (earliestOf(offer, story, delivery) > story.latest(since))
      return [`delivered in a pause since ${since.at} ms: ${nameOfDelivery(delivery)}`];
    if (delivery.at - since.at > LONGEST_SWEEP)
      return [`delivered long after the pause at ${since.at} ms: ${nameOfDelivery(delivery)}`];
    return [];
  });

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
