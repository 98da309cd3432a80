/** A property's name, or an index of an array. */
export type PathStep = string | number;

/** Where something is in a payload, such as `payload.lines[0]`. A name that is not an identifier may be data, and is left out. */
export function pathText(path: readonly PathStep[]): string {
  const steps = path.map((step) => {
    if (typeof step === "number") return `[${step}]`;
    // Such as the key of a map.
    return IDENTIFIER.test(step) ? `.${step}` : "[...]";
  });
  return `payload${steps.join("")}`;
}

const IDENTIFIER = /^[a-z_$][\w$]{0,60}$/i;
