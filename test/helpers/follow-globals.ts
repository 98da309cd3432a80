import { replaceRuntime } from "../../src/time/runtime.ts";

/** Makes the library's timers and its clock whatever the globals are, so that a test can replace them. */
export function followGlobals(): void {
  replaceRuntime({
    setTimeout: (callback, delay) => setTimeout(callback, delay),
    clearTimeout: (timeout) => clearTimeout(timeout),
    setInterval: (callback, delay) => setInterval(callback, delay),
    clearInterval: (interval) => clearInterval(interval),
    setImmediate: (callback) => setImmediate(callback),
    clearImmediate: (immediate) => clearImmediate(immediate),
    nextTick: (callback) => process.nextTick(callback),
    queueMicrotask: (callback) => queueMicrotask(callback),
    now: () => performance.now(),
  });
}
