import { Session, type Profiler } from "node:inspector/promises";

/** What ran between two moments: the names of functions by the file they stand in. */
export type Walk = ReadonlyMap<string, readonly string[]>;

/** V8's precise coverage of this process. It counts calls of functions, whoever made them. */
export class Coverage {
  readonly #session = new Session();
  readonly #prefix: string;

  /** `root` is the URL of the folder whose files count. */
  constructor(root: URL) {
    this.#prefix = root.href;
  }

  async start(): Promise<void> {
    this.#session.connect();
    await this.#session.post("Profiler.enable");
    await this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  }

  /** Returns what ran since the last call. */
  async take(): Promise<Walk> {
    const { result } = await this.#session.post("Profiler.takePreciseCoverage");
    const walk = new Map<string, string[]>();
    for (const { url, functions } of result) {
      if (!url.startsWith(this.#prefix)) continue;
      const ran = functions.filter(hasRun).map(({ functionName }) => functionName);
      if (ran.length > 0) walk.set(url.slice(this.#prefix.length).replace(/\?.*/, ""), ran);
    }
    return walk;
  }

  stop(): void {
    this.#session.disconnect();
  }
}

function hasRun({ functionName, ranges }: Profiler.FunctionCoverage): boolean {
  // tsx adds it, to give functions their names.
  return functionName !== "__name" && ranges.some(({ count }) => count > 0);
}
