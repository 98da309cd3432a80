/**
 * Lua functions that several scripts share. `defineScript` writes those that a script needs in front of
 * its body, behind its keys, which they read by name.
 *
 * Others may have written any bytes under our keys, and Redis rolls nothing back when a script breaks
 * off. So no function of a fragment raises an error for bytes that it cannot read: they lead to nothing.
 */
export interface Fragment {
  /** Names of the keys that it reads; every script that needs it must declare them. */
  readonly keys: readonly string[];
  /** Fragments whose functions it calls. */
  readonly needs: readonly Fragment[];
  readonly lua: string;
}

/** Declares a fragment. */
export function defineFragment({
  keys = [],
  needs = [],
  lua,
}: Partial<Fragment> & Pick<Fragment, "lua">): Fragment {
  return { keys, needs, lua: lua.trim() };
}

/**
 * These fragments and all that they need: each once, and behind those that it needs itself.
 *
 * @throws {TypeError} if a fragment needs itself, by whatever way.
 */
export function inOrder(fragments: readonly Fragment[]): Fragment[] {
  const ordered = new Set<Fragment>();
  const open = new Set<Fragment>();
  const add = (fragment: Fragment): void => {
    if (ordered.has(fragment)) return;
    if (open.has(fragment)) throw new TypeError("a Lua fragment must not need itself");
    open.add(fragment);
    fragment.needs.forEach(add);
    ordered.add(fragment);
  };
  fragments.forEach(add);
  return [...ordered];
}
