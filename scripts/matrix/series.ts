/** The servers that the matrix is meant for, by the versions that differ for it. */
export const SERIES = ["Redis 7", "Redis 8.0", "Redis 8.2", "Valkey 8", "Valkey 9"] as const;

export type Series = (typeof SERIES)[number];

/**
 * The series of a server such as `Redis 8.2.3`. A newer version of a series replaces an older one in the results.
 *
 * @throws {RangeError} if the matrix is not meant for it.
 */
export function seriesOf({ server }: { readonly server: string }): Series {
  const [, name, major, minor] = /^(\w+) (\d+)\.(\d+)/.exec(server) ?? [];
  const isRedis8 = name === "Redis" && major === "8";
  const found = isRedis8 ? (Number(minor) < 2 ? "Redis 8.0" : "Redis 8.2") : `${name} ${major}`;
  const series = SERIES.find((one) => one === found);
  if (series === undefined) throw new RangeError(`the matrix is not meant for ${server}`);
  return series;
}
