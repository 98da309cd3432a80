/**
 * Returns an interval that is up to a fifth longer or shorter than `average`, so that processes that started together do
 * not act together.
 */
export function spread(average: number): number {
  return average * (0.8 + 0.4 * Math.random());
}
