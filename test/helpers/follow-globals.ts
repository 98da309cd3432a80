import { replaceRuntime, type NetworkTime } from "../../src/time/runtime.ts";

/** Makes the library's timers and its clock whatever the globals are, so that a test can replace them. */
export function followGlobals(): void {
  const time: NetworkTime = {
    setTimeout: (callback, delay) => setTimeout(callback, delay),
    clearTimeout: (timeout) => clearTimeout(timeout),
    setInterval: (callback, delay) => setInterval(callback, delay),
    clearInterval: (interval) => clearInterval(interval),
    now: () => performance.now(),
  };
  replaceRuntime({
    ...time,
    network: time,
    setImmediate: (callback) => setImmediate(callback),
    clearImmediate: (immediate) => clearImmediate(immediate),
    nextTick: (callback) => process.nextTick(callback),
    queueMicrotask: (callback) => queueMicrotask(callback),
  });
}
