/**
 * Declarations without what is `@internal`. Constructors stay, with an argument that nobody has: left out they would allow a
 * call without arguments. So no declaration names types of `src` that users do not need.
 */
export function hideInternals(declarations: string): string {
  return declarations
    .replaceAll(
      /\/\*\* @internal([^\n]*\*\/\n\s*(?:protected )?constructor)\(.*?\);$/gms,
      "/** @internal$1(internal: never);",
    )
    .replaceAll(/^ *\/\*\* @internal[^\n]*\*\/\n(?!\s*(?:protected )?constructor)[^\n]*;\n/gm, "");
}
