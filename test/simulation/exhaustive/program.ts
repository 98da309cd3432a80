import { run, type Arguments, type Row, type Script } from "../../../src/lua/script.ts";
import type { RedisClient } from "../../../src/redis/client.ts";
import type { Machine } from "./machine.ts";

/** One command that a client sends: an atomic step. */
export interface Step {
  /** What it does, for people. */
  readonly label: string;
  /** Whether ioredis sends it again when its reply is lost. If not, the client is told that the reply was lost. */
  readonly isResent: boolean;
  /** Whether the client asks again after this reply. It then remembers nothing of it. */
  readonly isInVain: (reply: unknown) => boolean;
  readonly send: (client: RedisClient, machine: Machine, instant: number) => Promise<unknown>;
  /** The message that it offers. */
  readonly offers: string | undefined;
}

/** Something that a client has seen or been told, for the promises. */
export type Event = readonly [what: string, ...about: (string | number | boolean | undefined)[]];

/** What a client does, from its start to its end. */
export type Program = (log: (...event: Event) => void) => Flow<void>;

/** A part of a program: it yields steps, and gets their replies. */
export type Flow<Result> = Generator<Step, Result, unknown>;

/** The reply was lost, or the command was never sent: the client cannot know. */
export class LostError extends Error {}

interface HowSent {
  readonly label?: string | undefined;
  /** Sent on the connection `commands`, which sends again what lost its reply. Defaults to `background`. */
  readonly isResent?: boolean;
  readonly isInVain?: (reply: never) => boolean;
  readonly offers?: string | undefined;
}

/** Runs a script. */
export function* call<Key extends string, Arg extends string, Reply, Column extends string = never>(
  script: Script<Key, Arg, Reply, Column>,
  keys: Readonly<Record<Key, string>>,
  args: Arguments<Arg>,
  rows: readonly Row<Column>[] = [],
  how: HowSent = {},
): Flow<Reply> {
  return (yield {
    ...stepOf(how, script.name),
    send: (client, machine, instant) =>
      run(client, machine.at(instant, script as never) as typeof script, keys, args, rows),
  }) as Reply;
}

/** The same, with the instant at which the reply came (epoch ms). `isInVain` gets both. */
export function* timed<Reply>(
  flow: Flow<Reply>,
): Flow<{ readonly reply: Reply; readonly at: number }> {
  const { value: step } = flow.next() as { readonly value: Step };
  return (yield {
    ...step,
    send: async (client, machine, instant) => ({
      reply: await step.send(client, machine, instant),
      at: instant,
    }),
  }) as { readonly reply: Reply; readonly at: number };
}

/** Sends a plain command about one key. */
export function* command<Reply>(
  name: string,
  key: string,
  words: readonly (string | number)[] = [],
  how: HowSent = {},
): Flow<Reply> {
  return (yield {
    ...stepOf(how, name),
    send: (client) => client.callBuffer(name, key, ...words),
  }) as Reply;
}

function stepOf({ label, isResent = false, isInVain, offers }: HowSent, name: string) {
  return {
    label: label ?? name,
    isResent,
    offers,
    isInVain: (isInVain ?? (() => false)) as (reply: unknown) => boolean,
  };
}

/** What a step of a client came to. */
export type Answer =
  | { readonly reply: unknown; readonly text: string }
  | { readonly error: Error; readonly text: string };

/** Where a client is after these answers. */
export interface Position {
  /** Undefined at the end. */
  readonly step: Step | undefined;
  readonly events: readonly Event[];
}

/** Runs a program from its start with the answers to its steps so far. */
export function positionOf(program: Program, answers: readonly Answer[]): Position {
  const events: Event[] = [];
  const flow = program((...event) => events.push(event));
  let next = flow.next();
  for (const answer of answers) {
    next = "error" in answer ? flow.throw(answer.error) : flow.next(answer.reply);
  }
  return { step: next.done === true ? undefined : next.value, events };
}

/** The answer to a step. Errors that the client did not expect end the search. */
export function answerOf(found: { readonly reply?: unknown; readonly error?: Error }): Answer {
  const { reply, error } = found;
  if (error !== undefined) return { error, text: `error ${error.message}` };
  return { reply, text: textOf(reply) };
}

export const LOST: Answer = { error: new LostError("the reply was lost"), text: "lost" };

/** The same text for the same value. */
function textOf(value: unknown): string {
  return (
    JSON.stringify(value, (_, one: unknown) => {
      const bytes = one as { type?: string; data?: number[] } | null;
      return bytes?.type === "Buffer" && bytes.data !== undefined
        ? Buffer.from(bytes.data).toString("latin1")
        : one;
    }) ?? "nothing"
  );
}
