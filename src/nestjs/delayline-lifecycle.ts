import { Logger, type OnApplicationShutdown, type OnModuleDestroy } from "@nestjs/common";
import { Delayline } from "../client/delayline.ts";
import { checkModuleOptions, type DelaylineModuleOptions } from "./delayline-module-options.ts";

/**
 * The client of an application, from its start to its end.
 *
 * When the application shuts down, subscriptions end in the first phase, `onModuleDestroy`, and their handlers finish, while the
 * services that they use are there as far as Nest's order allows. Requests are still answered then, and may offer; the
 * client is closed in the last phase, `onApplicationShutdown`, when no server listens any more.
 */
export class DelaylineLifecycle implements OnModuleDestroy, OnApplicationShutdown {
  readonly line: Delayline;
  readonly #shutdownTimeout: number | undefined;

  /** @throws {TypeError | RangeError} if an option is not legal. */
  constructor(options: DelaylineModuleOptions) {
    const { client, shutdownTimeout } = checkModuleOptions(options);
    this.#shutdownTimeout = shutdownTimeout;
    this.line = new Delayline(client);
    log(this.line);
  }

  async onModuleDestroy(): Promise<void> {
    const timeout = this.#shutdownTimeout;
    await this.line.closeSubscriptions(timeout === undefined ? {} : { timeout });
  }

  async onApplicationShutdown(): Promise<void> {
    // Who has not finished by now has had the time.
    await this.line.close(this.#shutdownTimeout === undefined ? {} : { timeout: 0 });
  }
}

/** What nobody awaits goes to Nest's log. */
function log(line: Delayline): void {
  const logger = new Logger("Delayline");
  line.on("error", (error) => {
    // Of a handler that failed, its own error says where.
    const { cause } = error;
    logger.error(error.message, cause instanceof Error ? cause.stack : error.stack);
  });
  line.on("recovered", ({ error, duration }) => {
    logger.log(`over after ${Math.round(duration)} ms: ${error.message}`);
  });
}
