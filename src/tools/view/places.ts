import type { QueueStats } from "../../index.ts";
import { PLACES, type DuePlace, type Place, type Verb } from "../../inside.ts";

/** The names of the places of a message, in the order of the table. */
export const PLACE_NAMES = Object.keys(PLACES) as Place[];

/** What people can do with messages, in any place. */
export const VERBS: readonly Verb[] = [
  ...new Set(Object.values(PLACES).flatMap(({ verbs }): readonly Verb[] => verbs)),
];

/** The numbers that count the messages in these places. */
export type Counted<P extends Place> = Pick<QueueStats, (typeof PLACES)[P]["number"]>;

/** How many messages are in all places together. */
export function messagesIn(numbers: Counted<Place>): number {
  return countIn(PLACE_NAMES, numbers);
}

/** How many messages become ready later: those that can still be cancelled. */
export function notReadyIn(numbers: Counted<DuePlace>): number {
  return countIn(DUE_PLACES, numbers);
}

const DUE_PLACES = PLACE_NAMES.filter((place): place is DuePlace =>
  (PLACES[place].verbs as readonly Verb[]).includes("cancel"),
);

function countIn<P extends Place>(places: readonly P[], numbers: Counted<P>): number {
  return places.reduce((sum, place) => sum + numbers[PLACES[place].number as keyof Counted<P>], 0);
}
