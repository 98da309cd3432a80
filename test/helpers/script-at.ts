import { defineFragment, type Fragment } from "../../src/lua/fragment.ts";
import { clock } from "../../src/lua/fragments/clock.ts";
import { defineScript, type Script } from "../../src/lua/script.ts";

/** Returns a script that runs as if the server's clock showed `instant` (epoch ms, with fractions). */
export function scriptAt<Key extends string, Arg extends string, Reply, Column extends string>(
  instant: number,
  script: Script<Key, Arg, Reply, Column>,
): Script<Key, Arg, Reply, Column> {
  return withClock(String(Math.round(instant * 1000)), script);
}

/**
 * Returns a script for which the server's clock shows what is under this key (epoch microseconds). It stays the same while
 * time goes on.
 */
export function scriptBy<Key extends string, Arg extends string, Reply, Column extends string>(
  key: string,
  script: Script<Key, Arg, Reply, Column>,
): Script<Key, Arg, Reply, Column> {
  return withClock(`tonumber(redis.call("GET", "${key}"))`, script);
}

function withClock<Key extends string, Arg extends string, Reply, Column extends string>(
  micros: string,
  script: Script<Key, Arg, Reply, Column>,
): Script<Key, Arg, Reply, Column> {
  const other = defineFragment({ lua: `local function clock() return ${micros} end` });
  const swap = (fragment: Fragment): Fragment =>
    fragment === clock
      ? other
      : { ...fragment, needs: swapAll(fragment.needs), rarely: swapAll(fragment.rarely) };
  const swapped = new Map<Fragment, Fragment>();
  const swapAll = (fragments: readonly Fragment[]): Fragment[] =>
    fragments.map((fragment) => {
      const known = swapped.get(fragment) ?? swap(fragment);
      swapped.set(fragment, known);
      return known;
    });
  const { body, needs, rarely, within } = script.source;
  return defineScript({
    ...script,
    lua: body,
    needs: swapAll(needs),
    rarely: swapAll(rarely),
    within: Object.fromEntries(
      Object.entries(within).map(([name, one]) => [name, withClock(micros, one as typeof script)]),
    ),
  });
}
