/*
 * A process may hold the library twice: as ES modules and as CommonJS, or in two versions. `instanceof` tells the classes of
 * one copy from those of the other. A class that users make instances of carries a brand, which all copies know.
 */

/** Marks the instances of a class. */
export function brand(Class: abstract new (...args: never) => object, name: string): void {
  Object.defineProperty(Class.prototype, Symbol.for(`delayline.${name}`), { value: true });
}

/** Whether a value is an instance of the class with this brand, in whichever copy. Never throws. */
export function isBranded(value: unknown, name: string): value is object {
  if (typeof value !== "object" || value === null) return false;
  try {
    return Reflect.get(value, Symbol.for(`delayline.${name}`)) === true;
  } catch {
    // A revoked proxy.
    return false;
  }
}
