import type { QueueStats } from "../../index.ts";
import { PLACES, type Place, type Verb } from "../../inside.ts";

/** The names of the places of a message, in the order of the table. */
export const PLACE_NAMES = Object.keys(PLACES) as Place[];

/** What people can do with messages, in any place. */
export const VERBS: readonly Verb[] = [
  ...new Set(Object.values(PLACES).flatMap(({ verbs }): readonly Verb[] => verbs)),
];

/** How many messages are in all places together. */
export function messagesIn(numbers: Pick<QueueStats, (typeof PLACES)[Place]["number"]>): number {
  return PLACE_NAMES.reduce((sum, place) => sum + numbers[PLACES[place].number], 0);
}
