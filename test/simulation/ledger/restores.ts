import { BOUND } from "../../../src/redis/fuse.ts";
import { copiesOf, changesOf, type Rule } from "./promises.ts";
import type { Deed, Delivery, Fault, Moment, Offer, Story } from "./story.ts";

/** **An alarm has a reason**: no process tells more often that Redis went back than it went back beyond the bound. */
export const restoredFor: Rule = (story) =>
  story.restores.flatMap((deed) => {
    const { by, at, index } = deed;
    const reasons = story.faults.filter(
      (fault) => fault.kind === "failover" && fault.at - fault.since > BOUND && fault.index < index,
    );
    const alarms = story.restores.filter((one) => one.by === by && one.index <= index);
    if (alarms.length <= reasons.length) return [];
    return [`alarm ${alarms.length} of ${by} at ${at} ms for ${reasons.length} restores`];
  });

/**
 * **A restore is told once** by each process that remembers and lives on. Only if another process has moved messages
 * first, its newer claim hides the restore.
 */
export const restoredOnce: Rule = (story) =>
  restoresOf(story).flatMap((fault) =>
    (fault.remembering ?? []).flatMap((by) => {
      const until = { at: fault.at + NOTICED };
      const isOver = story.calm !== undefined && story.calm.at < until.at;
      const isLeaving = story
        .callsOf("close")
        .some((call) => call.by === by && call.begun.at <= until.at);
      if (isOver || isLeaving || story.isHit(by, ["crash"], { at: 0 }, until)) return [];
      const alarms = story.restores.filter((one) => one.by === by && one.index > fault.index);
      if (alarms.length === 1 || isHidden(by, fault, story)) return [];
      return [`restore at ${fault.at} ms: ${by} tells it ${alarms.length} times`];
    }),
  );

/** **With `onRestore: "pause"` whoever remembers rests**: it moves and takes nothing until somebody resumes the queue. */
export const restingAfterRestore: Rule = (story, { onRestore }) => {
  if (onRestore !== "pause") return [];
  return restoresOf(story).flatMap((fault) => {
    const resumed = story.callsOf("resume").find(({ begun }) => begun.index > fault.index);
    const until = resumed?.begun ?? story.end;
    const rests = ({ by, at, index }: Deed | Delivery, from: number) =>
      fault.remembering?.includes(by) === true &&
      at > from &&
      index <= until.index &&
      !isHidden(by, fault, story);
    return [
      ...story.moves
        .filter((move) => rests(move, fault.at + UNDER_WAY))
        .map(({ by, at }) => `restore at ${fault.at} ms: ${by} moves at ${at} ms, before a resume`),
      ...story.deliveries
        .filter((delivery) => rests(delivery, fault.at + HANDED_OUT))
        .map(({ by, at, n }) => `restore at ${fault.at} ms: ${by} takes ${n} at ${at} ms`),
    ];
  });
};

/** Whether an older copy that was restored after this moment certainly held the message, so that it comes again. */
export function isInCopy(offer: Offer, { index }: Moment, story: Story): boolean {
  const { deadline, ended } = offer;
  if (deadline === undefined || ended === undefined || offer.fate !== "stored") return false;
  if (copiesOf(offer, story) > 1 || changesOf(offer, story).length > 0) return false;
  if (story.faults.some(({ kind }) => kind === "clock-step")) return false;
  const dueAt = ended.at + deadline - ended.now;
  return restoresOf(story).some(
    ({ since, ...fault }) => index < fault.index && ended.at < since && dueAt > since,
  );
}

/** Whether the process has told nothing, since another one has moved messages before it could look. */
function isHidden(by: string, { at, index }: Fault, story: Story): boolean {
  if (story.restores.some((alarm) => alarm.by === by && alarm.index > index)) return false;
  const first = story.moves.find((move) => move.at > at + UNDER_WAY);
  return first !== undefined && first.by !== by && first.at <= at + NOTICED;
}

function restoresOf({ faults }: Story): Fault[] {
  return faults.filter(({ remembering }) => remembering !== undefined);
}

/** Milliseconds within which a process that lives on is connected again and has looked. */
const NOTICED = 15_000;

/** Milliseconds that a reply of the time before may be under way. */
const UNDER_WAY = 20;

/** Milliseconds that a message of the time before may wait for its handler. */
const HANDED_OUT = 3000;
