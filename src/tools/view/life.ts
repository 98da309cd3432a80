import { countBeforeRedrive, type Sighting } from "./sighting.ts";

/** Something that happened to a message, or will. */
export interface Moment {
  /**
   * What happened. `"ready"` is the last time that it became ready, `"retry"` is when its next attempt may begin.
   */
  readonly what:
    "offered" | "due" | "ready" | "taken" | "failed" | "retry" | "died" | "handled" | "dropped";
  /** When (epoch ms on the server's clock). It may be in the future. */
  readonly at: number;
  /** Which attempt, if it is about one. */
  readonly attempt?: number;
  /** Why it failed, died or was dropped. */
  readonly reason?: string;
  /** Whether it failed before the message was last redriven: since then attempts count from 1 again. */
  readonly isBeforeRedrive?: boolean;
  /** The group, if it is about one group. */
  readonly group?: string;
  /** The consumer that took it, and its process, if that is one of this library. */
  readonly consumer?: string;
  readonly host?: string;
  readonly pid?: number;
}

/**
 * The life of a message, as far as its present place tells, in the order of time. Redis keeps no history: of attempts it
 * knows the last ten that failed, and of becoming ready the last time.
 */
export function lifeOf(seen: Sighting): Moment[] {
  const { state, id, offeredAt, deadline, readyAt, takenAt, heldBackUntil, diedAt } = seen;
  const { attempts, failures, reason, consumer, host, pid } = seen;
  const group = seen.group === undefined ? {} : { group: seen.group };
  const due = Number(id.slice(0, id.lastIndexOf("-")));
  const old = countBeforeRedrive(seen);
  const moments: Moment[] = [];
  // The made-up id of a letter in a foreign format shows no deadline.
  if (due !== diedAt) moments.push({ what: "due", at: due });
  failures.forEach((failure, i) => {
    const isBeforeRedrive = i < old ? { isBeforeRedrive: true } : {};
    moments.push({ what: "failed", ...failure, ...isBeforeRedrive, ...group });
  });
  if (readyAt !== undefined) moments.push({ what: "ready", at: readyAt, ...group });
  if (takenAt !== undefined) {
    const who = {
      ...(consumer !== undefined && { consumer }),
      ...(host !== undefined && { host }),
      ...(pid !== undefined && { pid }),
    };
    // Redis rounds for how long a message has been taken: never before it was ready.
    const at = Math.max(takenAt, readyAt ?? takenAt);
    moments.push({ what: "taken", at, attempt: attempts, ...who, ...group });
  }
  const next = state === "retrying" ? deadline : heldBackUntil;
  if (next !== undefined) {
    moments.push({ what: "retry", at: next, attempt: attempts + 1, ...group });
  }
  if (diedAt !== undefined) {
    moments.push({ what: "died", at: diedAt, ...(reason && { reason }), ...group });
  }
  return inOrder(offeredAt, moments);
}

/** Puts moments into the order of time; equal instants keep their order. */
export function inOrder(offeredAt: number | undefined, moments: readonly Moment[]): Moment[] {
  // First in any case: its time is the producer's estimate of the server's clock, which may be a little later.
  const offered: Moment[] = offeredAt === undefined ? [] : [{ what: "offered", at: offeredAt }];
  return [...offered, ...moments.toSorted((a, b) => a.at - b.at)];
}
