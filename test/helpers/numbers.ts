/** The whole numbers from 0 on, `count` of them. */
export function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

export function ascending(numbers: Iterable<number>): number[] {
  return [...numbers].toSorted((a, b) => a - b);
}

/** The number in the middle, or of an even count the upper one of the two; NaN if there is none. */
export function median(numbers: Iterable<number>): number {
  const sorted = ascending(numbers);
  return sorted[sorted.length >> 1] ?? NaN;
}
