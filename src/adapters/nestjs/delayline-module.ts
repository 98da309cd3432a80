import { textField } from "../../values/thrown.ts";
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
import { DelaylineHealthIndicator, getDelaylineHealthToken } from "./delayline-health-indicator.ts";
import {
  getDelaylineToken,
  getQueueToken,
  openQueue,
  type QueueRegistration,
} from "./queue-registration.ts";
import { networkTime } from "../../time/runtime.ts";

/**
 * Queues in a Nest application: a client for the whole application, or several with names, and a provider for each queue
 * that a module registers.
 *
 * A client is closed with the application: by `app.close()` or, after `app.enableShutdownHooks()`, by a signal. Its
 * errors go to Nest's log.
 */
export class DelaylineModule {
  /**
   * Provides a client to the whole application. Import it once for each connection, in the root module. For a second
   * connection give it a name: `forRoot("archive", { redis })`, then `registerQueue({ name, kind, connection: "archive" })`
   * and `@InjectQueue(name, { connection: "archive" })`.
   *
   * @throws when the application starts: {TypeError | RangeError} if an option is not legal, or a connection is there
   * twice.
   */
  static forRoot(options?: DelaylineModuleOptions): DynamicModule;
  static forRoot(connection: string, options?: DelaylineModuleOptions): DynamicModule;
  static forRoot(...args: Named<DelaylineModuleOptions>): DynamicModule {
    const { connection, options = {} } = named(args);
    return rootModule(connection, { useFactory: () => options });
  }

  /** As {@link forRoot}, with options that depend on other providers. */
  static forRootAsync(options: DelaylineModuleAsyncOptions): DynamicModule;
  static forRootAsync(connection: string, options: DelaylineModuleAsyncOptions): DynamicModule;
  static forRootAsync(...args: Named<DelaylineModuleAsyncOptions>): DynamicModule {
    const { connection, options } = named(args);
    return rootModule(connection, options as DelaylineModuleAsyncOptions);
  }

  /**
   * Provides queues to the module that imports it: `@InjectQueue(name)` injects them. The queues are opened, and their
   * names and options checked, when the application starts.
   *
   * @throws {TypeError} if two handles of a queue are of the same kind.
   */
  static registerQueue(...queues: readonly QueueRegistration[]): DynamicModule {
    const providers = queues.flatMap((queue): Provider[] => {
      const { name, kind, connection } = queue;
      const choice = connection === undefined ? {} : { connection };
      const sameName = queues.filter(
        (other) => other.name === name && other.connection === connection,
      );
      if (sameName.filter((other) => other.kind === kind).length > 1) {
        throw new TypeError(`queue "${name}" is registered twice as "${kind}"`);
      }
      const token = getQueueToken(name, { ...choice, kind });
      return [
        {
          provide: token,
          inject: [getDelaylineToken(connection)],
          useFactory: (line: Delayline) => openQueue(line, queue),
        },
        ...(sameName.length === 1
          ? [{ provide: getQueueToken(name, choice), useExisting: token }]
          : []),
      ];
    });
    return { module: DelaylineModule, providers, exports: providers.map(tokenOf) };
  }
}

// Called as a function: decorator syntax is not part of the language yet.
Module({})(DelaylineModule);

/** The name of a connection, if it has one, and options. */
type Named<Options> =
  | readonly [options?: Options | undefined]
  | readonly [connection: string, options?: Options | undefined];

function named<Options>(args: Named<Options>): {
  readonly connection: string | undefined;
  readonly options: Options | undefined;
} {
  const [first, second] = args;
  if (typeof first !== "string") return { connection: undefined, options: first };
  if (first !== "") return { connection: first, options: second };
  throw new TypeError("the name of a connection must not be empty; leave it out for the only one");
}

function rootModule(
  connection: string | undefined,
  { imports = [], inject = [], useFactory }: DelaylineModuleAsyncOptions,
): DynamicModule {
  const lifecycle =
    connection === undefined ? DelaylineLifecycle : `delayline lifecycle "${connection}"`;
  const line = getDelaylineToken(connection);
  const health = getDelaylineHealthToken(connection);
  return {
    module: DelaylineModule,
    global: true,
    imports: [ConnectionsModule, ...imports],
    providers: [
      {
        provide: lifecycle,
        inject: [Connections, ...inject],
        useFactory: async (connections: Connections, ...args: unknown[]) => {
          connections.add(connection);
          return new DelaylineLifecycle(await useFactory(...args), connection);
        },
      },
      { provide: line, inject: [lifecycle], useFactory: (of: DelaylineLifecycle) => of.line },
      {
        provide: health,
        inject: [line],
        useFactory: (of: Delayline) => new DelaylineHealthIndicator(of),
      },
    ],
    exports: [line, health],
  };
}

/** The connections of one application: a module without options exists once in it. */
class Connections {
  readonly #names = new Set<string | undefined>();

  /** @throws {TypeError} if it is there already: Nest would inject one of the two everywhere. */
  add(connection: string | undefined): void {
    if (!this.#names.has(connection)) return void this.#names.add(connection);
    const which =
      connection === undefined
        ? "a connection without a name"
        : `the connection ${JSON.stringify(connection)}`;
    throw new TypeError(
      `DelaylineModule.forRoot must be imported once for each connection, got ${which} twice; give each further one a name of its own, as in forRoot("archive", { redis })`,
    );
  }
}

class ConnectionsModule {}
Module({ providers: [Connections], exports: [Connections] })(ConnectionsModule);

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
  /** When `shutdownTimeout` is over (`networkTime.now()`); undefined until the shutdown begins. */
  #endsAt: number | undefined;

  /** @throws {TypeError | RangeError} if an option is not legal. */
  constructor(options: DelaylineModuleOptions, connection?: string) {
    const { client, shutdownTimeout } = checkModuleOptions(options);
    this.#shutdownTimeout = shutdownTimeout;
    this.line = new Delayline(client);
    log(this.line, connection);
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
    this.#endsAt ??= networkTime.now() + this.#shutdownTimeout;
    return { handlerTimeout: Math.max(0, this.#endsAt - networkTime.now()) };
  }
}

/** Logs `error` and `recovered` events to Nest's log. */
function log(line: Delayline, connection?: string): void {
  const logger = new Logger(connection === undefined ? "Delayline" : `Delayline ${connection}`);
  line.on("error", (error) => {
    // The stack of a handler's own error shows where it failed.
    const { cause } = error;
    logger.error(error.message, textField(cause, "stack") ?? error.stack);
  });
  line.on("recovered", ({ error, duration }) => {
    logger.log(`over after ${Math.round(duration)} ms: ${error.message}`);
  });
}
