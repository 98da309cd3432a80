import { isDeepStrictEqual } from "node:util";
import type { QueueDefinition } from "../handles/queue-definition.ts";
import {
  RELIABLE_DEFAULTS,
  type ReliableQueueOptions,
  type ReliableSettings,
} from "../handles/reliable-options.ts";
import { QUEUE_OPTIONS, type QueueOptions, type QueueSettings } from "../queue/options.ts";

/** What all handles of a queue have in common. */
type Common = Pick<QueueSettings<any>, "codec" | "interop">;

/** What all handles of a group have in common. */
type CommonOfGroup = Pick<ReliableSettings<any>["group"], (typeof SAME_IN_GROUP)[number]>;

/**
 * The options that the handles of one open queue share.
 *
 * A handle inherits the options that it leaves out from earlier handles. Where all must agree, the first handle decides, by its own
 * options, the client's or the defaults, and another value is refused. Options of a single handle (`retry`, `maxPayloadBytes`,
 * `anyTime`) may differ. `transfer` is not inherited: a client moves a queue's messages if any of its handles says so, in any
 * order. `partitions` is needed only once: `Parts` keeps it.
 */
export class SharedOptions {
  readonly #queue: string;
  /** What the handles have given, the first value of each option. */
  #given: QueueOptions<any> = {};
  /** Undefined until the first handle: a queue may be open without one. */
  #common: Common | undefined;
  readonly #groups = new Map<
    string,
    { readonly given: ReliableQueueOptions<any>; readonly common: CommonOfGroup }
  >();

  #definition: QueueDefinition | undefined;

  constructor(queue: string) {
    this.#queue = `queue "${queue}"`;
  }

  get interop(): "none" | "redisson" {
    return this.#common?.interop ?? "none";
  }

  /** Adds what earlier handles have given to the options of a new one. */
  complete<T>(options: QueueOptions<T>): QueueOptions<T> {
    // A codec of another type is refused by `check`.
    return { ...this.#given, ...present(options) } as QueueOptions<T>;
  }

  /** As {@link complete}, for a handle of a group. */
  completeForGroup<T>(options: ReliableQueueOptions<T>): ReliableQueueOptions<T> {
    const given = { ...this.#given, ...this.#groups.get(groupOf(options))?.given };
    return { ...given, ...present(options) } as ReliableQueueOptions<T>;
  }

  /** @throws {TypeError} if a handle contradicts an earlier one. */
  check(settings: Common): void {
    if (this.#common === undefined) return;
    const { codec, interop } = this.#common;
    if (codec !== settings.codec) {
      const isNamesake = codec.name === settings.codec.name;
      const got = isNamesake ? "another object of that name" : settings.codec.name;
      checkSame(`codec of ${this.#queue}`, codec.name, got);
    }
    checkSame(`interop of ${this.#queue}`, interop, settings.interop);
  }

  /** As {@link check}, for what the handles of a group have in common besides. */
  checkGroup(options: ReliableQueueOptions<any>, settings: CommonOfGroup): void {
    const group = groupOf(options);
    const earlier = this.#groups.get(group);
    if (earlier === undefined) return;
    const { common, given } = earlier;
    const of = `of group "${group}" of ${this.#queue}`;
    for (const name of SAME_IN_GROUP) {
      checkSame(`${name} ${of}`, common[name], settings[name]);
    }
    const { exclusive = options.exclusive } = given;
    checkSame(`exclusive ${of}`, exclusive, options.exclusive ?? exclusive);
  }

  /** @throws {TypeError} if the queue was opened by another definition with other options. */
  checkDefinition(definition: QueueDefinition): void {
    if (this.#definition === undefined) return;
    const other = differenceOf(this.#definition, definition);
    if (other === undefined) return;
    throw new TypeError(
      `definition of ${this.#queue} must be the same for all its handles in a client: the one that is open has another ${other}; export one definition, and share it`,
    );
  }

  /** Notes the definition by which the queue was opened. */
  addDefinition(definition: QueueDefinition): void {
    this.#definition ??= definition;
  }

  /** Notes a handle that is open now. */
  add(options: QueueOptions<any>, settings: Common): void {
    const own = present(options, (name) => SHARED.includes(name));
    this.#given = { ...own, ...this.#given };
    this.#common ??= settings;
  }

  /** As {@link add}, for a handle of a group. */
  addForGroup(options: ReliableQueueOptions<any>, settings: CommonOfGroup): void {
    const group = groupOf(options);
    const { given, common = settings } = this.#groups.get(group) ?? {};
    const own = present(options, (name) => !QUEUE_OPTIONS.includes(name));
    this.#groups.set(group, { given: { ...own, ...given }, common });
  }
}

/** Options that all handles of a group in a client have in common. */
const SAME_IN_GROUP = ["leaseTimeout", "maxAttempts", "keepHandled"] as const;

/** Options of a queue that a later handle takes over. */
const SHARED = QUEUE_OPTIONS.filter((name) => name !== "transfer" && name !== "partitions");

/** An option in which two definitions differ. */
function differenceOf(one: QueueDefinition, other: QueueDefinition): string | undefined {
  if (one.kind !== other.kind) return "reliable";
  const values = [one.options, other.options] as Readonly<Record<string, unknown>>[];
  const names = new Set(values.flatMap((options) => Object.keys(options)));
  return [...names].find((name) => !isDeepStrictEqual(values[0]?.[name], values[1]?.[name]));
}

function groupOf({ group = RELIABLE_DEFAULTS.group }: ReliableQueueOptions<any>): string {
  return group;
}

/** The options that have a value, and whose name is `wanted`. */
function present<Options extends object>(
  options: Options,
  isWanted: (name: string) => boolean = () => true,
): Options {
  const given = Object.entries(options).filter(
    ([name, value]) => value !== undefined && isWanted(name),
  );
  return Object.fromEntries(given) as Options;
}

/**
 * Checks an option that must be the same for all handles.
 *
 * @param what the option and what it belongs to, such as `codec of queue "orders"`.
 * @throws {TypeError} if a handle's value is not that of the first handle.
 */
function checkSame(what: string, first: unknown, own: unknown): void {
  if (own === first) return;
  throw new TypeError(
    `${what} must be the same for all its handles in a client: the first one has ${JSON.stringify(first)}, got ${JSON.stringify(own)}; give it to the first one, or leave it out here`,
  );
}
