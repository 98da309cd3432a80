/** Runs something for each number below `count`, with so many calls outstanding at any time. */
export async function eachOf(
  count: number,
  inFlight: number,
  work: (i: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const workOn = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: inFlight }, workOn));
}
