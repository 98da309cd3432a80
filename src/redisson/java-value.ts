/**
 * A value with the Java class that it has, or is to have, on the other side.
 *
 * For what JavaScript has no type of its own for: `new JavaValue("java.util.HashSet", ["a"])`,
 * `new JavaValue("java.lang.Double", 5)`, `new JavaValue("com.acme.Order", { id: "x1" })`.
 *
 * Without a class it is written as it is, without a type id, as the Jackson codecs do for fields
 * declared as an array (`String[]`, `int[]`): `new JavaValue(undefined, ["a", "b"])`.
 */
export class JavaValue<T = unknown> {
  constructor(
    /** The fully qualified name, as `Class.getName()` gives it. */
    readonly javaClass: string | undefined,
    readonly value: T,
  ) {}
}
