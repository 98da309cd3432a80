import { AsyncLocalStorage, createHook } from "node:async_hooks";

/** Runs something. Returns a function that counts the timers it left behind that keep the process alive. */
export async function watchTimers(run: () => Promise<void>): Promise<() => number> {
  const isOurs = new AsyncLocalStorage<true>();
  const timers = new Map<number, NodeJS.Timeout>();
  const hook = createHook({
    init: (id, type, _, resource) => {
      if (type === "Timeout" && isOurs.getStore() === true) {
        timers.set(id, resource as NodeJS.Timeout);
      }
    },
    destroy: (id) => void timers.delete(id),
  });
  hook.enable();
  await isOurs.run(true, run);
  return () => {
    const count = [...timers.values()].filter((timer) => timer.hasRef()).length;
    if (count === 0) hook.disable();
    return count;
  };
}
