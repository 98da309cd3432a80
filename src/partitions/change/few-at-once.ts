/**
 * Calls `act` for each item, four at a time. After a failure no further call is started, and the promise rejects once
 * those under way have settled.
 */
export async function fewAtOnce<Item>(
  items: readonly Item[],
  act: (item: Item) => Promise<void>,
): Promise<void> {
  const left = items.values();
  let hasFailed = false;
  const work = async () => {
    for (const item of left) {
      if (hasFailed) return;
      try {
        await act(item);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
  const failed = workers.find((worker) => worker.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

const AT_ONCE = 4;
