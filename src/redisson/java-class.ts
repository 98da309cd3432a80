/** The names of Java classes, and what their values look like between type ids. */

/** Whether a text can be what `Class.getName()` gives, or Jackson's form of it with `<...>`. */
export function isClassName(text: string): boolean {
  return text.length <= MAX_LENGTH && CLASS_NAME.test(text);
}

const MAX_LENGTH = 500;

const SIMPLE_NAME = String.raw`[\p{L}\p{N}_$]+`;
const CLASS_NAME = new RegExp(
  String.raw`^(?:\[+(?:[ZBCDFIJS]|L${SIMPLE_NAME}(?:\.${SIMPLE_NAME})*;)|${SIMPLE_NAME}(?:\.${SIMPLE_NAME})*(?:<[^"\\]+>)?)$`,
  "u",
);

/** In a package, and with a capital letter, as all classes have but the texts that are none. */
const QUALIFIED_NAME = /^\[|\.[\p{Lu}_$][\p{L}\p{N}_$]*(?:<.*>)?$/u;

/** What a class may hold, where that is known: a text in the first place may be just a text. */
const SHAPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  "java.lang.Long": isWhole,
  "java.lang.Integer": isWhole,
  "java.lang.Short": isWhole,
  "java.lang.Byte": isWhole,
  "java.math.BigInteger": isWhole,
  "java.lang.Double": (value) => typeof value === "number" || NOT_FINITE.has(value),
  "java.lang.Float": (value) => typeof value === "number" || NOT_FINITE.has(value),
  "java.util.Date": isDate,
  "java.sql.Timestamp": isDate,
  "java.util.ArrayList": Array.isArray,
  "java.util.UUID": (value) => typeof value === "string",
};

const NOT_FINITE = new Set<unknown>(["NaN", "Infinity", "-Infinity"]);

/** Whether an array of these two is a type id and its value, and not just a list. */
export function isWrapper(javaClass: string, value: unknown): boolean {
  if (!isClassName(javaClass) || !QUALIFIED_NAME.test(javaClass)) return false;
  const shape = Object.hasOwn(SHAPES, javaClass) ? SHAPES[javaClass] : undefined;
  return value === null || shape === undefined || shape(value);
}

/** Whether the writer would choose the same class by itself. */
export function isNatural(javaClass: string, plain: unknown): boolean {
  switch (javaClass) {
    case "java.util.ArrayList":
    case "[B":
    case "java.util.Date":
      return true;
    case "java.math.BigInteger":
      return typeof plain === "bigint" && BigInt.asIntN(64, plain) !== plain;
    default:
      return false;
  }
}

/** As a number, or as an ObjectMapper of the user's own may write it. */
function isDate(value: unknown): boolean {
  return isWhole(value) || (typeof value === "string" && !Number.isNaN(Date.parse(value)));
}

function isWhole(value: unknown): boolean {
  return typeof value === "bigint" || Number.isInteger(value);
}
