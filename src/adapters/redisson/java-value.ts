import { brand, isBranded } from "../../codecs/brand.ts";

const NAME = "JavaValue";

/**
 * A value with its Java class.
 *
 * For values without a JavaScript type of their own: `new JavaValue("java.util.HashSet", ["a"])`,
 * `new JavaValue("java.lang.Double", 5)`, `new JavaValue("com.acme.Order", { id: "x1" })`.
 *
 * Without a class the value is written without a type id, as the Jackson codecs do for fields declared as an array
 * (`String[]`, `int[]`): `new JavaValue(undefined, ["a", "b"])`.
 */
export class JavaValue<T = unknown> {
  constructor(
    /** The fully qualified name, as returned by `Class.getName()`. */
    readonly javaClass: string | undefined,
    readonly value: T,
  ) {}

  static {
    brand(this, NAME);
  }
}

/** Whether a value is a JavaValue of this copy of the library, or of another one. */
export function isJavaValue(value: unknown): value is JavaValue {
  return isBranded(value, NAME);
}
