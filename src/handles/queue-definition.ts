import type { BuiltInCodecs, TypedCodecName } from "../codecs/built-in.ts";
import type { RetryOptions } from "../reliable/consuming/retry-ladder.ts";
import { checkNoPartition } from "../partitions/ring/ring.ts";
import { checkOptions } from "../queue/checks.ts";
import { queueKeys } from "../queue/keys.ts";
import { QUEUE_OPTIONS, queueSettings, type QueueOptions } from "../queue/options.ts";
import {
  GROUP_OPTIONS,
  reliableSettings,
  type GroupOptions,
  type StrictIfExclusive,
} from "./reliable-options.ts";

declare const payload: unique symbol;

/**
 * A queue as all its processes see it: its name, its options, and the type of its payloads. Made by {@link defineQueue},
 * opened by `Delayline.open`. Frozen.
 */
export interface QueueDefinition<T = unknown, Kind extends QueueKind = QueueKind> {
  readonly name: string;
  /** Whether messages are acknowledged. */
  readonly kind: Kind;
  /** The options of its handles. */
  readonly options: Readonly<OptionsOf<T>[Kind]>;
  /** Exists only as a type, for TypeScript. */
  readonly [payload]?: T;
}

type QueueKind = "plain" | "reliable";

interface OptionsOf<T> {
  plain: DefinedOptions<T>;
  reliable: DefinedOptions<T> & AsGroup;
}

/** Options of the consumer group in a definition. */
type AsGroup = GroupOptions & StrictIfExclusive;

/** The type of the payloads of a queue: `PayloadOf<typeof orders>`. */
export type PayloadOf<Definition extends QueueDefinition<any>> =
  Definition extends QueueDefinition<infer T> ? T : never;

/** Options that are the same in every process; `Delayline.open` takes the others. */
type DefinedOptions<T> = Omit<QueueOptions<T>, "transfer">;

/** Options of {@link defineQueue}: the options of a queue that are the same in every process. */
export interface DefineQueueOptions<T = unknown> extends DefinedOptions<T> {
  /**
   * Makes the messages acknowledged: `true`, or the options of the consumer group, such as `{ maxAttempts: 4 }`.
   *
   * A message is then delivered at least once. This costs a command for each acknowledgement, signs of life from each
   * process, and some 40 bytes more for each ready message. Defaults to a plain queue, where a message is gone once it
   * is taken.
   */
  readonly reliable?: true | AsGroup;
}

/** Options of a queue that may differ from process to process. */
export interface OpenQueueOptions {
  /** Whether this process moves due messages; see {@link QueueOptions.transfer}. Defaults to the client's `transfer`. */
  readonly transfer?: boolean;
  /** For a reliable queue: the consumer group of this handle. Defaults to the definition's group. */
  readonly group?: string;
}

/**
 * Defines a queue once, for everything that uses it: the API that offers, the worker that takes, the tests.
 * `Delayline.open` returns its handle. All handles then agree on codec, partitions, group and payload type by
 * construction.
 *
 * Checks the name and the options, and returns a frozen definition. It opens nothing and belongs to no client.
 *
 * ```ts
 * export const orders = defineQueue<Order>("orders", { reliable: { maxAttempts: 4 } });
 * ```
 *
 * @throws {TypeError | RangeError} if the name cannot name a queue, or an option is not legal.
 */
export function defineQueue<Name extends TypedCodecName>(
  name: string,
  options: DefineQueueOptions & { readonly codec: Name; readonly reliable: true | AsGroup },
): QueueDefinition<BuiltInCodecs[Name], "reliable">;
export function defineQueue<Name extends TypedCodecName>(
  name: string,
  options: DefineQueueOptions & { readonly codec: Name; readonly reliable?: undefined },
): QueueDefinition<BuiltInCodecs[Name], "plain">;
export function defineQueue<T = unknown>(
  name: string,
  options: DefineQueueOptions<T> & { readonly reliable: true | AsGroup },
): QueueDefinition<T, "reliable">;
export function defineQueue<T = unknown>(
  name: string,
  options?: DefineQueueOptions<T> & { readonly reliable?: undefined },
): QueueDefinition<T, "plain">;
export function defineQueue<T = unknown>(
  name: string,
  options: DefineQueueOptions<T>,
): QueueDefinition<T>;
export function defineQueue<T>(
  name: string,
  options: DefineQueueOptions<T> = {},
): QueueDefinition<T> {
  queueKeys(name);
  checkNoPartition(name);
  checkDefined(options);
  const { reliable, ...common } = options;
  if (reliable === undefined) {
    queueSettings(common);
    return Object.freeze({ name, kind: "plain", options: Object.freeze(common) });
  }
  if (reliable !== true) checkOptions("reliable option", reliable, GROUP_OPTIONS);
  const group = reliable === true ? {} : reliable;
  reliableSettings({ ...common, ...group });
  const all = { ...common, ...copied(group) };
  return Object.freeze({ name, kind: "reliable", options: Object.freeze(all) });
}

function checkDefined(options: object): void {
  const name = "queue definition option";
  const known = [...QUEUE_OPTIONS.filter((option) => option !== "transfer"), "reliable"];
  const mine = Object.keys(options ?? {}).find((option) => !known.includes(option));
  if (mine === "transfer") {
    throw new TypeError(`${name} must not be transfer: each process says it for itself, in open`);
  }
  if (mine !== undefined && GROUP_OPTIONS.includes(mine)) {
    throw new TypeError(`${name} must not be ${mine}; write reliable: { ${mine} }`);
  }
  checkOptions(name, options, known);
}

/** A copy that does not change with the original. */
function copied({ retry, ...others }: GroupOptions): GroupOptions {
  if (typeof retry !== "object") return { ...others, ...(retry !== undefined && { retry }) };
  const copy = Object.assign(Array.isArray(retry) ? [] : {}, retry) as RetryOptions;
  Object.freeze(copy);
  return { ...others, retry: copy };
}

/**
 * Checks the arguments of `Delayline.open`. Another copy of the library may have made the definition.
 *
 * @throws {TypeError} unless it is what {@link defineQueue} returns, and the options are known.
 */
export function checkOpening(definition: unknown, options: unknown): void {
  const { name, kind, options: own } = (definition ?? {}) as Partial<QueueDefinition>;
  const isKnown = kind === "plain" || kind === "reliable";
  if (typeof name !== "string" || !isKnown || typeof own !== "object") {
    const wayOut = typeof definition === "string" ? "; for a name, use getDelayedQueue" : "";
    throw new TypeError(
      `definition must be what defineQueue returns, got ${definition === null ? "null" : typeof definition}${wayOut}`,
    );
  }
  checkOptions("open option", options, kind === "reliable" ? ["transfer", "group"] : ["transfer"]);
}
