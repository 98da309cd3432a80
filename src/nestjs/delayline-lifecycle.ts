import { Logger, type OnApplicationShutdown, type OnModuleDestroy } from "@nestjs/common";
import { Delayline } from "../client/delayline.ts";
import type { CloseOptions } from "../queue/consuming/consumer.ts";
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
  /** When the time for the shutdown is over, on the clock of `performance.now()`; undefined before it begins. */
  #endsAt: number | undefined;

  /** @throws {TypeError | RangeError} if an option is not legal. */
  constructor(options: DelaylineModuleOptions) {
    const { client, shutdownTimeout } = checkModuleOptions(options);
    this.#shutdownTimeout = shutdownTimeout;
    this.line = new Delayline(client);
    log(this.line);
  }

  async onModuleDestroy(): Promise<void> {
    await this.line.closeSubscriptions(this.#timeLeft());
  }

  async onApplicationShutdown(): Promise<void> {
    // The bodies of loops have run on, and may have a message in hand.
    await this.line.close(this.#timeLeft());
  }

  /** What is left of `shutdownTimeout`, which begins with the first call. */
  #timeLeft(): CloseOptions {
    if (this.#shutdownTimeout === undefined) return {};
    this.#endsAt ??= performance.now() + this.#shutdownTimeout;
    return { timeout: Math.max(0, this.#endsAt - performance.now()) };
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
