import { packAddress } from "../../../src/queue/message/message.ts";
import { bytes } from "../../helpers/moves.ts";
import type { Stream } from "../../helpers/contents.ts";
import type { State } from "./state.ts";

// What a refused script may leave behind, or undone, since it does no harm. Each rule returns a state without it.

export const RULES = {
  /**
   * Elements of the insertion order and entries of the index without a message. Every reader skips them, and tidying
   * removes them; with `interop: "redisson"`, a sweep makes the order exact again.
   */
  dead: (state: State): State => {
    const places = placesOf(state);
    const others = { ...state };
    for (const key of ["order", "compacted"]) {
      const list = state[key];
      if (list?.type !== "list") continue;
      const value = list.value.filter((element) => places.has(element));
      others[key] = { ...list, value };
    }
    const index = state["businessKeys"];
    if (index?.type !== "hash") return others;
    const value = index.value.filter(([, entry]) => places.has(entry.slice(0, 24)));
    return { ...others, businessKeys: { ...index, value } };
  },

  /** How much of the rate is used up: what was refused has used up its part. */
  flow: (state: State): State => omit(state, "flow"),

  /** When to look again at those that wait: the next look says it anew. */
  look: (state: State): State => {
    const { flow } = state;
    if (flow?.type !== "hash") return state;
    return { ...state, flow: { ...flow, value: flow.value.filter(([name]) => name !== "look") } };
  },

  /** Which lanes rest, and until when: they go on when that is over, or when somebody looks. */
  rests: (state: State): State =>
    ["flow", "lanes", "resting", "lanePaces"].reduce((left, key) => omit(left, key), state),

  /** Turns whose messages are gone: they mean nothing, and go when they come up. */
  turns: (state: State): State => {
    const { turns, room } = state;
    if (turns?.type !== "zset" || room?.type !== "hash") return omit(state, "turns");
    const ids = new Set(room.value.map(([id]) => id));
    const value = turns.value.filter(([turn]) => ids.has(turn.slice(-16)));
    return { ...state, turns: { ...turns, value } };
  },

  /** Since when a lane that is not held yet rests. */
  holds: (state: State): State => omit(omit(state, "resting"), "lanes"),

  /** A lane that a schedule has no more: it costs, and limits nobody. */
  ownLane: (state: State): State =>
    ["flow", "lanes", "resting", "hands", "turns"].reduce((left, key) => omit(left, key), state),

  /** A retrying message is without its business key, if Redis refuses the index. */
  keyless: (state: State): State => omit(state, "businessKeys"),

  /** The elements of a message that was offered twice. Lists show it twice; it is delivered once. */
  twice: (state: State): State => {
    const { order } = state;
    if (order?.type !== "list") return state;
    return { ...state, order: { ...order, value: [...new Set(order.value)] } };
  },

  /** Entries of the stream that every group has finished: `trim` deletes them. */
  finished: (state: State): State =>
    withEntries(state, ([id], { groups }) =>
      groups.some(({ last, pending }) => isAbove(id, last) || pending.some(([one]) => one === id)),
    ),

  /** An entry that nobody can read stays in flight while Redis refuses to set it aside. */
  foreign: (state: State): State =>
    withEntries(omit(state, "unreadable"), ([, fields]) => fields.includes("p")),

  /** Names of schedules that are gone, and the newest entry of their runs: a planner drops the name. */
  unplanned: (state: State): State => omit(omit(state, "planning"), "running"),

  /** A journal that notes the number of the last batch although there was none. */
  journal: (state: State): State =>
    JSON.stringify(state["journal"]?.value) === '[["last","0"]]' ? omit(state, "journal") : state,

  /** When a change of the number of partitions began, for people. */
  began: (state: State): State => {
    const { journal } = state;
    if (journal?.type !== "hash") return state;
    const value = journal.value.filter(([field]) => field !== "began");
    return { ...state, journal: { ...journal, value } };
  },

  /** The name of the task that moved last: a hint, which expires. */
  mover: (state: State): State => omit(state, "mover"),

  /** How many messages were dropped, for people. */
  dropped: (state: State): State => omit(state, "dropped"),

  /** Whether the ready LIST holds messages, for tools: a hint, which the next sweep brings in step. */
  listed: (state: State): State => omit(state, "listed"),

  /** Which messages were handled, for people. */
  handled: (state: State): State => omit(state, "handled"),

  /** What is remembered of messages that were offered with `once`: without it, their keys are free. */
  once: (state: State): State => omit(omit(state, "once"), "onceEnds"),

  /** A key whose record is gone: it goes when its time has come. */
  onceEnds: (state: State): State => omit(state, "onceEnds"),

  /** Which groups the stream has: only asked for if somebody deletes the stream. */
  knownGroups: (state: State): State => omit(state, "knownGroups"),

  /** How many messages were given back, for people: without it, as many more seem to have become ready. */
  returned: (state: State): State => omit(state, "returned"),
} as const;

export type Rule = keyof typeof RULES;

/** Whether two states are the same but for what these rules call harmless. */
export function isSame(one: State, other: State, rules: readonly Rule[] = []): boolean {
  return JSON.stringify(without(rules, one)) === JSON.stringify(without(rules, other));
}

function without(rules: readonly Rule[], state: State): State {
  let left = state;
  for (const rule of rules) left = RULES[rule](left);
  return Object.fromEntries(Object.entries(left).filter(([, { value }]) => !isEmpty(value)));
}

function omit(state: State, key: string): State {
  return Object.fromEntries(Object.entries(state).filter(([name]) => name !== key));
}

/** Redis has no empty keys. */
const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/** The members of the delayed messages, their addresses, and those of the retrying ones. */
function placesOf({ timeouts, retries }: State): Set<string> {
  const members = timeouts?.type === "zset" ? timeouts.value : [];
  const addressed = members.filter(([member]) => member.length > 16);
  const names = retries?.type === "zset" ? retries.value : [];
  return new Set([
    ...names.map(([name]) => name.slice(1, 25)),
    ...members.map(([member]) => member),
    ...addressed.map(([member, score]) =>
      packAddress(score, bytes(member.slice(1, 17))).toString("latin1"),
    ),
  ]);
}

/** Drops entries of the stream, also where they are in flight. */
function withEntries(
  state: State,
  isKept: (entry: Stream["entries"][number], stream: Stream) => boolean,
): State {
  const { stream } = state;
  if (stream?.type !== "stream") return state;
  const { value } = stream;
  const gone = new Set(value.entries.filter((one) => !isKept(one, value)).map(([id]) => id));
  const left: Stream = {
    entries: value.entries.filter(([id]) => !gone.has(id)),
    groups: value.groups.map((group) => ({
      ...group,
      pending: group.pending.filter(([id]) => !gone.has(id)),
    })),
  };
  return { ...state, stream: { ...stream, value: left } };
}

/** Whether an id of an entry is above another one. New ones are above the seeded ones. */
function isAbove(id: string, other: string): boolean {
  const [ms, seq] = partsOf(id);
  const [otherMs, otherSeq] = partsOf(other);
  return ms === otherMs ? seq > otherSeq : ms > otherMs;
}

function partsOf(id: string): [ms: number, seq: number] {
  if (id.startsWith("new ")) return [Infinity, Number(id.slice(4))];
  const [ms, seq] = id.split("-");
  return [Number(ms), Number(seq)];
}
