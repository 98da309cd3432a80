/**
 * Lua functions that several scripts share. `defineScript` writes them between the script's keys, which they read
 * by name, and its body.
 *
 * Foreign bytes, and no rollback: no function of a fragment raises an error for bytes that it cannot read.
 */
export interface Fragment {
  /** Names of the keys that it reads. Every script that needs it must declare them. */
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
 * Returns these fragments and all that they need: each once, after those that it needs itself.
 *
 * @throws {TypeError} if a fragment needs itself, directly or through others.
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
