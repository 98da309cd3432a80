import {
  Logger,
  Module,
  type DynamicModule,
  type FactoryProvider,
  type ModuleMetadata,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type Provider,
} from "@nestjs/common";
import { Delayline } from "../../client/delayline.ts";
import { checkDuration } from "../../queue/checks.ts";
import type { CloseOptions } from "../../queue/consuming/consumer.ts";
import type { DelaylineOptions } from "../../queue/options.ts";
import { DelaylineHealthIndicator } from "./delayline-health-indicator.ts";
import { getQueueToken, openQueue, type QueueRegistration } from "./queue-registration.ts";

/**
 * Queues in a Nest application: one client for the whole application, and a provider for each queue that a module
 * registers.
 *
 * The client is closed with the application: by `app.close()` or, after `app.enableShutdownHooks()`, by a signal. Its
 * errors go to Nest's log.
 */
export class DelaylineModule {
  /**
   * Provides the client to the whole application. Import it once, in the root module.
   *
   * @throws when the application starts: {TypeError | RangeError} if an option is not legal.
   */
  static forRoot(options: DelaylineModuleOptions = {}): DynamicModule {
    return rootModule({ useFactory: () => new DelaylineLifecycle(options) });
  }

  /** As {@link forRoot}, with options that depend on other providers. */
  static forRootAsync(options: DelaylineModuleAsyncOptions): DynamicModule {
    const { imports = [], inject = [], useFactory } = options;
    const lifecycle = {
      inject,
      useFactory: async (...args: unknown[]) => new DelaylineLifecycle(await useFactory(...args)),
    };
    return { ...rootModule(lifecycle), imports };
  }

  /**
   * Provides queues to the module that imports it: `@InjectQueue(name)` injects them. The queues are opened, and their
   * names and options checked, when the application starts.
   *
   * @throws {TypeError} if two handles of a queue are of the same kind.
   */
  static registerQueue(...queues: readonly QueueRegistration[]): DynamicModule {
    const providers = queues.flatMap((queue): Provider[] => {
      const { name, kind } = queue;
      const sameName = queues.filter((other) => other.name === name);
      if (sameName.filter((other) => other.kind === kind).length > 1) {
        throw new TypeError(`queue "${name}" is registered twice as "${kind}"`);
      }
      const token = getQueueToken(name, kind);
      return [
        {
          provide: token,
          inject: [Delayline],
          useFactory: (line: Delayline) => openQueue(line, queue),
        },
        ...(sameName.length === 1 ? [{ provide: getQueueToken(name), useExisting: token }] : []),
      ];
    });
    return { module: DelaylineModule, providers, exports: providers.map(tokenOf) };
  }
}

// Called as a function: decorator syntax is not part of the language yet.
Module({})(DelaylineModule);

function rootModule(
  lifecycle: Pick<FactoryProvider<DelaylineLifecycle>, "inject" | "useFactory">,
): DynamicModule {
  return {
    module: DelaylineModule,
    global: true,
    providers: [
      { provide: DelaylineLifecycle, ...lifecycle },
      {
        provide: Delayline,
        inject: [DelaylineLifecycle],
        useFactory: ({ line }: DelaylineLifecycle) => line,
      },
      {
        provide: DelaylineHealthIndicator,
        inject: [Delayline],
        useFactory: (line: Delayline) => new DelaylineHealthIndicator(line),
      },
    ],
    exports: [Delayline, DelaylineHealthIndicator],
  };
}

function tokenOf(provider: Provider) {
  return typeof provider === "function" ? provider : provider.provide;
}

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
function checkModuleOptions(options: DelaylineModuleOptions): {
  readonly client: DelaylineOptions;
  readonly shutdownTimeout: number | undefined;
} {
  const { shutdownTimeout, ...client } = options;
  if (shutdownTimeout !== undefined) checkDuration("shutdownTimeout", shutdownTimeout);
  return { client, shutdownTimeout };
}

/**
 * The client of an application, closed in two phases.
 *
 * `onModuleDestroy` ends subscriptions and waits for their handlers, while the services that they use still exist as
 * far as Nest's order allows. Requests are still answered then, and may offer. `onApplicationShutdown` closes the
 * client, once no server is listening.
 */
class DelaylineLifecycle implements OnModuleDestroy, OnApplicationShutdown {
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
