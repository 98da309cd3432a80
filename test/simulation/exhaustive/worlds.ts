import { exclusiveWorlds } from "./exclusive.ts";
import type { World } from "./explore.ts";
import { partitionedWorlds } from "./partitioned.ts";
import { plainWorlds } from "./plain.ts";
import { reliableWorlds } from "./reliable.ts";

/** Every world, by the kind of queue. */
export const worlds: readonly World[] = [
  ...plainWorlds,
  ...reliableWorlds,
  ...partitionedWorlds,
  ...exclusiveWorlds,
];

/** The world with this name. */
export function worldNamed(name: string): World {
  const found = worlds.find((world) => world.name === name);
  if (found === undefined) throw new Error(`there is no world "${name}"`);
  return found;
}
