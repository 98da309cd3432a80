import type { World } from "../sim.ts";
import { exclusive } from "./exclusive.ts";
import { flow } from "./flow.ts";
import { groups } from "./groups.ts";
import { guards } from "./guards.ts";
import { keys } from "./keys.ts";
import { migration } from "./migration.ts";
import { partitions } from "./partitions.ts";
import { pauses } from "./pauses.ts";
import { plain } from "./plain.ts";
import { handlers, reliable } from "./reliable.ts";
import { restores } from "./restores.ts";
import { schedules } from "./schedules.ts";
import { smoke } from "./smoke.ts";
import { spread } from "./spread.ts";

/** All worlds. */
export const WORLDS: readonly World[] = [
  smoke,
  plain,
  reliable,
  groups,
  migration,
  keys,
  guards,
  pauses,
  flow,
  restores,
  partitions,
  exclusive,
  spread,
  schedules,
  handlers,
];

/** @throws {RangeError} if there is none of that name. */
export function worldNamed(name: string): World {
  const world = WORLDS.find((one) => one.name === name);
  if (world !== undefined) return world;
  throw new RangeError(`no world "${name}"; there are ${WORLDS.map((one) => one.name).join(", ")}`);
}
