import { Module, type DynamicModule, type FactoryProvider, type Provider } from "@nestjs/common";
import { Delayline } from "../../client/delayline.ts";
import { DelaylineHealthIndicator } from "./delayline-health-indicator.ts";
import { DelaylineLifecycle } from "./delayline-lifecycle.ts";
import type {
  DelaylineModuleAsyncOptions,
  DelaylineModuleOptions,
} from "./delayline-module-options.ts";
import { getQueueToken } from "./inject.ts";
import { openQueue, type QueueRegistration } from "./queue-registration.ts";

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
