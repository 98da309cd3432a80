/** A text of `bytes` bytes that begins with a number. Every library can store it. */
export function makePayload(number: number, bytes = 100): string {
  return `${number} `.padEnd(bytes, FILLER);
}

/** The number that a payload begins with. */
export function numberOf(payload: string): number {
  return Number.parseInt(payload, 10);
}

/** The business key of a message, if it has one. */
export const keyOf = (number: number): string => `order-${number}`;

const FILLER = "a payload that is not quite the same throughout; ";
