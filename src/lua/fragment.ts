/**
 * Lua functions that several scripts share. `defineScript` writes them between the script's keys, which they read
 * by name, and its body.
 *
 * Foreign bytes, and no rollback: no function of a fragment raises an error for bytes that it cannot read.
 */
export interface Fragment {
  /** Names of the keys that it reads. A script that needs it has them. */
  readonly keys: readonly string[];
  /** Fragments whose functions it calls. */
  readonly needs: readonly Fragment[];
  /** Fragments whose functions it calls in rare branches only, as `rare().name()`; see {@link frontOf}. */
  readonly rarely: readonly Fragment[];
  readonly lua: string;
}

/** The fragments that a text calls. */
export type Needs = Pick<Fragment, "needs" | "rarely">;

/** Declares a fragment. */
export function defineFragment({
  keys = [],
  needs = [],
  rarely = [],
  lua,
}: Partial<Fragment> & Pick<Fragment, "lua">): Fragment {
  return { keys, needs, rarely, lua: lua.trim() };
}

/** Returns the names of the keys that these fragments read, and all that they need: each once. */
export function keysOf({ needs, rarely }: Needs): string[] {
  const all = new Set(inOrder([...needs, ...rarely]));
  for (const fragment of all) for (const other of inOrder(fragment.rarely)) all.add(other);
  return [...new Set([...all].flatMap((fragment) => fragment.keys))];
}

/**
 * Returns the functions that stand in front of a body, which has these keys and calls these fragments.
 *
 * Redis makes the functions anew at each run, 0.1 us for each, whether they are called or not. So only what is needed is
 * made at once. What is needed `rarely`, by the body or by what is made at once, is made when `rare()` is called for the
 * first time: it returns a table of the functions that are called through it. What these need rarely is made in the same
 * way, by a `rare()` of their own.
 *
 * @throws {TypeError} if a fragment needs itself or reads another key, or if no fragment defines what is called through
 * `rare()`.
 */
export function frontOf(keys: readonly string[], { needs, rarely }: Needs, body: string): string {
  for (const key of keysOf({ needs, rarely })) {
    if (!keys.includes(key)) throw new TypeError(`a fragment reads the key "${key}"`);
  }
  return levelOf(keys, [], { needs, rarely }, body);
}

/** The functions of one level. `outer`: the fragments that are there already. */
function levelOf(
  keys: readonly string[],
  outer: readonly Fragment[],
  { needs, rarely }: Needs,
  body: string,
): string {
  const own = inOrder(needs).filter((fragment) => !outer.includes(fragment));
  const texts = own.map((fragment) => fragment.lua);
  const called = new Set([...texts, body].flatMap((text) => matchesOf(CALLED_RARELY, text)));
  if (called.size === 0) return texts.join("\n");
  const there = [...outer, ...own];
  const late = inOrder([...rarely, ...own.flatMap((fragment) => fragment.rarely)]);
  const defined = [...there, ...late].flatMap(({ lua }) => matchesOf(DEFINED, lua));
  for (const name of called) {
    if (!defined.includes(name)) throw new TypeError(`no fragment defines "${name}"`);
  }
  const lateKeys = late
    .filter((fragment) => !there.includes(fragment))
    .flatMap((fragment) => fragment.keys);
  const table = `made = { ${[...called].map((name) => `${name} = ${name}`).join(", ")} }`;
  return [
    "local rare",
    ...texts,
    "function rare()",
    "local made",
    "do",
    // A key that was taken from outside would cost each run, too.
    ...[...new Set(lateKeys)].map((key) => `local ${key} = KEYS[${keys.indexOf(key) + 1}]`),
    levelOf(keys, there, { needs: late, rarely: [] }, table),
    table,
    "end",
    "rare = function() return made end",
    "return made",
    "end",
  ]
    .filter((text) => text !== "")
    .join("\n");
}

const CALLED_RARELY = /\brare\(\)\.(\w+)/g;
const DEFINED = /^local function (\w+)/gm;

function matchesOf(pattern: RegExp, text: string): string[] {
  return Array.from(text.matchAll(pattern), ([, name = ""]) => name);
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
