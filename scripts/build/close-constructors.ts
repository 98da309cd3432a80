/**
 * Declarations whose `@internal` constructors take an argument that nobody has. They do not name types of `src` any
 * more, which users do not need; and left out they would allow a call without arguments.
 */
export function closeConstructors(declarations: string): string {
  return declarations.replaceAll(
    /\/\*\* @internal([^\n]*\*\/\n\s*(?:protected )?constructor)\(.*?\);$/gms,
    "/** @internal$1(internal: never);",
  );
}
