import { CONDITIONS } from "./conditions.ts";
import { FLOW } from "./flow.ts";
import { HISTORY } from "./history.ts";
import type { Mutant } from "./mutant.ts";
import { EXCLUSIVE, PARTITIONS } from "./partitions.ts";
import { PLAIN } from "./plain.ts";
import { RELIABLE } from "./reliable.ts";
import { RESTORE } from "./restore.ts";
import { REVOKE } from "./revoke.ts";
import { SCHEDULES } from "./schedules.ts";

/** All mutants, by their rooms, and behind them the faults that there were once. */
export const MUTANTS: readonly Mutant[] = [
  ...PLAIN,
  ...CONDITIONS,
  ...FLOW,
  ...RELIABLE,
  ...REVOKE,
  ...PARTITIONS,
  ...EXCLUSIVE,
  ...SCHEDULES,
  ...RESTORE,
  ...HISTORY,
];
