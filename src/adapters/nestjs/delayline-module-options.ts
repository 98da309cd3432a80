import type { FactoryProvider, ModuleMetadata } from "@nestjs/common";
import { checkDuration } from "../../queue/checks.ts";
import type { DelaylineOptions } from "../../queue/options.ts";

/** Options of `DelaylineModule.forRoot`: those of the client, and how it is closed. */
export interface DelaylineModuleOptions extends DelaylineOptions {
  /**
   * How long to wait, in milliseconds, for running handlers and bodies of `for await` loops together, from the
   * beginning of the shutdown. Those that still run are then left alone; messages of a reliable queue that they hold
   * are delivered again. It should be shorter than the time until the process is killed. Defaults to no limit.
   */
  readonly shutdownTimeout?: number | undefined;
}

/** Options of `DelaylineModule.forRootAsync`. */
export interface DelaylineModuleAsyncOptions {
  /** Modules whose providers `inject` names. */
  readonly imports?: ModuleMetadata["imports"];
  /** The providers that `useFactory` is called with. */
  readonly inject?: FactoryProvider["inject"];
  readonly useFactory: (...args: any[]) => DelaylineModuleOptions | Promise<DelaylineModuleOptions>;
}

/** @throws {TypeError | RangeError} if `shutdownTimeout` is not legal. */
export function checkModuleOptions(options: DelaylineModuleOptions): {
  readonly client: DelaylineOptions;
  readonly shutdownTimeout: number | undefined;
} {
  const { shutdownTimeout, ...client } = options;
  if (shutdownTimeout !== undefined) checkDuration("shutdownTimeout", shutdownTimeout);
  return { client, shutdownTimeout };
}
