import { Logger, type OnApplicationShutdown, type OnModuleDestroy } from "@nestjs/common";
import { Delayline } from "../../client/delayline.ts";
import type { CloseOptions } from "../../queue/consuming/consumer.ts";
import { checkModuleOptions, type DelaylineModuleOptions } from "./delayline-module-options.ts";

/**
 * The client of an application, closed in two phases.
 *
 * `onModuleDestroy` ends subscriptions and waits for their handlers, while the services that they use still exist as
 * far as Nest's order allows. Requests are still answered then, and may offer. `onApplicationShutdown` closes the
 * client, once no server is listening.
 */
export class DelaylineLifecycle implements OnModuleDestroy, OnApplicationShutdown {
  readonly line: Delayline;
  readonly #shutdownTimeout: number | undefined;
  /** When `shutdownTimeout` is over (`performance.now()`); undefined until the shutdown begins. */
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
    // `closeSubscriptions` does not wait for the bodies of loops, which may still hold a message.
    await this.line.close(this.#timeLeft());
  }

  /** The rest of `shutdownTimeout`, which begins to run with the first call. */
  #timeLeft(): CloseOptions {
    if (this.#shutdownTimeout === undefined) return {};
    this.#endsAt ??= performance.now() + this.#shutdownTimeout;
    return { timeout: Math.max(0, this.#endsAt - performance.now()) };
  }
}

/** Logs `error` and `recovered` events to Nest's log. */
function log(line: Delayline): void {
  const logger = new Logger("Delayline");
  line.on("error", (error) => {
    // The stack of a handler's own error shows where it failed.
    const { cause } = error;
    logger.error(error.message, cause instanceof Error ? cause.stack : error.stack);
  });
  line.on("recovered", ({ error, duration }) => {
    logger.log(`over after ${Math.round(duration)} ms: ${error.message}`);
  });
}
