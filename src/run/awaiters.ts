/**
 * Who awaits an async function, as V8's stack traces tell.
 *
 * V8 follows the promise of a suspended async function to the function that awaits it, also through `then`, `Promise.all`
 * and `return`. It costs nothing until it is asked. Other engines tell nothing.
 */

/** A function that awaits another one. */
export interface Awaiter {
  readonly name: string | null;
  /** The script and the position at which the function begins; undefined if the engine does not tell. */
  readonly position: string | undefined;
}

/**
 * Returns the functions that await the async function which calls this, the nearest first. The caller must have been
 * suspended before: only then can a function await it.
 */
export function awaiters(): Awaiter[] {
  // oxlint-disable-next-line typescript/unbound-method -- a hook of V8, which calls it without `this`
  const { prepareStackTrace, stackTraceLimit } = Error;
  let sites: readonly NodeJS.CallSite[] = [];
  try {
    Error.stackTraceLimit = DEPTH;
    Error.prepareStackTrace = (_, all) => (sites = all);
    // Reading the stack prepares it.
    void new Error("for its stack").stack;
  } catch {
    // In a process with frozen intrinsics there is no way to tell.
  }
  try {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  } catch {
    // Nor was anything changed there.
  }
  return sites
    .filter((site) => site.isAsync())
    .map((site) => ({ name: site.getFunctionName(), position: positionOf(site) }));
}

/** Gives an async function a name by which {@link awaiters} finds it, however the code was bundled. */
export function named<Run extends (...args: never[]) => unknown>(name: string, run: Run): Run {
  return Object.defineProperty(run, "name", { value: name });
}

function positionOf(site: NodeJS.CallSite): string | undefined {
  const line = site.getEnclosingLineNumber?.();
  if (typeof line !== "number") return undefined;
  return `${site.getFileName()}:${line}:${site.getEnclosingColumnNumber()}`;
}

/** More functions than ever await one another. */
const DEPTH = 200;
