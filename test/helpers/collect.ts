/** Collects the items of an iterable in an array. (`Array.fromAsync` comes with Node.js 22.) */
export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
