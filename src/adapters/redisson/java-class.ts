/** The names of Java classes, and the shapes of their values behind a type id. */

/** Whether a text can be a result of `Class.getName()`, or Jackson's form of it with `<...>`. */
export function isClassName(text: string): boolean {
  return text.length <= MAX_LENGTH && CLASS_NAME.test(text);
}

const MAX_LENGTH = 500;

const SIMPLE_NAME = String.raw`[\p{L}\p{N}_$]+`;
const CLASS_NAME = new RegExp(
  String.raw`^(?:\[+(?:[ZBCDFIJS]|L${SIMPLE_NAME}(?:\.${SIMPLE_NAME})*;)|${SIMPLE_NAME}(?:\.${SIMPLE_NAME})*(?:<[^"\\]+>)?)$`,
  "u",
);

/** An array class, or a name with a package and a capital letter: ordinary texts rarely look like that. */
const QUALIFIED_NAME = /^\[|\.[\p{Lu}_$][\p{L}\p{N}_$]*(?:<.*>)?$/u;

/**
 * The values that some classes may hold. If the value does not fit, the first element of the array is an ordinary text.
 */
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

/** Whether an array of these two is a type id and its value, rather than a list. */
export function isWrapper(javaClass: string, value: unknown): boolean {
  if (!isClassName(javaClass) || !QUALIFIED_NAME.test(javaClass)) return false;
  const shape = Object.hasOwn(SHAPES, javaClass) ? SHAPES[javaClass] : undefined;
  return value === null || shape === undefined || shape(value);
}

/** Whether a writer would choose the same class for the plain value. */
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

/** A date as a number, or as a text that a custom ObjectMapper writes. */
function isDate(value: unknown): boolean {
  return isWhole(value) || (typeof value === "string" && !Number.isNaN(Date.parse(value)));
}

function isWhole(value: unknown): boolean {
  return typeof value === "bigint" || Number.isInteger(value);
}
