import { createHash } from "node:crypto";
import type { Database } from "../../helpers/contents.ts";
import { withoutStreamIds } from "./stream-ids.ts";
import type { Machine } from "./machine.ts";
import {
  answerOf,
  LOST,
  positionOf,
  type Answer,
  type Event,
  type Program,
  type Step,
} from "./program.ts";

// A search through all orders in which the commands of some clients can reach Redis.
//
// A state is: what Redis holds, its clock, the answers that each client has had, and what is still on its way. The search
// begins at the state where nothing was sent, and goes through all states that one more command leads to, then all that
// two lead to, and so on. So the first order that breaks a promise is one of the shortest. A state that two orders lead to
// is looked at once: everything behind it depends on the state alone.

/** Faults, and how many of them may happen in one order. */
export interface Faults {
  /**
   * A reply is lost. A client whose connection sends again does so, at any later time. The other one is told, and the
   * command may have been carried out or not.
   */
  readonly lost?: number;
  /** The connection is cut, and the command is sent again; the first copy arrives at any later time, or never. */
  readonly late?: number;
  /** A client stops for ever. */
  readonly crashes?: number;
}

/** Some clients, and what has to be true whatever the order of their commands. */
export interface World {
  readonly name: string;
  /** Carried out before the clients start. */
  readonly seed?: Program;
  readonly clients: Readonly<Record<string, Program>>;
  /** What the server's clock shows, in turn (epoch ms). It may change between any two commands. */
  readonly instants?: readonly number[];
  readonly faults?: Faults;
  /** The faults in a long run, which has time for more orders. */
  readonly more?: Faults;
  /** Whether only a long run has time for its orders. Defaults to false. */
  readonly isLong?: true;
  /** The clients that may crash, or lose replies. Defaults to all. */
  readonly faulty?: readonly string[];
  /** Whether the message with this payload is delayed, to know a copy of its offer that comes too late. */
  readonly isDelayed: (database: Database, payload: string) => boolean;
  /** What has to be true at every instant. Returns what is wrong. */
  readonly check: (state: Reached) => string | undefined;
  /** What some process does in the end, long after the last instant, until nothing is left to do. */
  readonly drain: Program;
  /** What has to be true after that. */
  readonly checkEnd: (state: Reached) => string | undefined;
}

/** A state, as promises see it. */
export interface Reached {
  readonly database: Database;
  readonly instant: number;
  /** What each client has seen so far. */
  readonly events: Readonly<Record<string, readonly Event[]>>;
  /** What each client waits for; undefined if it has ended or crashed. */
  readonly pending: Readonly<Record<string, string | undefined>>;
  /**
   * Each message, as often as a copy of its offer came when an earlier copy had been stored and had left. It is then
   * stored once more: a limit that the models name as well (`StoredOnceAlways`).
   */
  readonly repeated: readonly string[];
}

/** The outcome of a search. */
export interface Found {
  /** In how many orders the commands can reach Redis. */
  readonly orders: bigint;
  readonly states: number;
  /** The states in which every client has ended or crashed, and nothing is on its way. */
  readonly ends: ReadonlySet<string>;
  /** Commands in all states, and how many of them had to be sent to Redis. */
  readonly commands: number;
  readonly sent: number;
  readonly seconds: number;
  /** A broken promise, and the commands that lead there. */
  readonly problem: { readonly what: string; readonly order: readonly string[] } | undefined;
}

interface ExploreOptions {
  /** Whether equal states are looked at once. Defaults to true. */
  readonly merges?: boolean;
  /** From how many states on the search gives up. */
  readonly maxStates?: number;
}

interface Client {
  readonly name: string;
  readonly answers: readonly Answer[];
  /** The answers and the events as text. */
  readonly answered: string;
  readonly seen: string;
  readonly isDead: boolean;
  /** Whether a copy of its offer was stored. */
  readonly hasStored: boolean;
  readonly step: Step | undefined;
  readonly events: readonly Event[];
}

/** A copy of a step that is still on its way. */
interface Late {
  readonly client: string;
  readonly step: Step;
  readonly at: number;
}

interface State {
  readonly database: Database;
  readonly clients: readonly Client[];
  readonly late: readonly Late[];
  readonly clockAt: number;
  readonly left: Required<Faults>;
  readonly repeated: readonly string[];
}

interface Node {
  readonly state: State;
  readonly before: Node | undefined;
  readonly via: string;
  readonly next: Node[];
  orders?: bigint;
}

/** Searches a world. Ends at the first broken promise. */
export async function explore(
  machine: Machine,
  world: World,
  { merges = true, maxStates = Infinity }: ExploreOptions = {},
): Promise<Found> {
  const startedAt = performance.now();
  const instants = world.instants ?? [NOW];
  const nodes = new Map<string, Node>();
  const ends = new Map<string, Node>();
  let count = 0;
  let commands = 0;
  /** The first one ends the search. */
  const problems: NonNullable<Found["problem"]>[] = [];
  const report = (node: Node, what: string | undefined, last?: string) => {
    if (what === undefined) return;
    problems.push({ what, order: [...orderOf(node), ...(last === undefined ? [] : [last])] });
  };
  const found = (): Found => ({
    orders: problems.length === 0 ? ordersFrom(root) : 0n,
    states: count,
    ends: new Set(ends.keys()),
    commands,
    sent: machine.sentCount,
    seconds: (performance.now() - startedAt) / 1000,
    problem: problems[0],
  });

  const seeded = await carryOut(machine, new Map(), instants[0] ?? NOW, world.seed);
  const root: Node = {
    state: {
      database: seeded.database,
      clients: Object.entries(world.clients).map(([name, program]) => clientOf(name, program, [])),
      late: [],
      clockAt: 0,
      left: { lost: 0, late: 0, crashes: 0, ...world.faults },
      repeated: [],
    },
    before: undefined,
    via: "",
    next: [],
  };
  const reach = (from: Node, via: string, state: State): Node | undefined => {
    const text = textOfState(state);
    const hash = createHash("sha1").update(text).digest("base64");
    const known = merges ? nodes.get(hash) : undefined;
    if (known !== undefined) {
      if (known !== from) from.next.push(known);
      return undefined;
    }
    const node: Node = { state, before: from, via, next: [] };
    from.next.push(node);
    nodes.set(hash, node);
    count++;
    report(node, wrongIn(world.check, reached(state, instants)));
    const isEnd = state.clients.every(({ step, isDead }) => isDead || step === undefined);
    if (!isEnd || state.late.length > 0) return node;
    if (!ends.has(hash)) ends.set(hash, node);
    return undefined;
  };

  let level = [root];
  while (level.length > 0 && problems.length === 0) {
    const next: Node[] = [];
    for (let from = 0; from < level.length && problems.length === 0; from += AT_ONCE) {
      const some = level.slice(from, from + AT_ONCE);
      const moves = some.flatMap((node) => movesOf(node.state, world, instants, machine));
      commands += moves.length;
      const states = await Promise.all(moves.map(({ make }) => make()));
      let at = 0;
      for (const node of some) {
        while (at < moves.length && moves[at]?.from === node.state) {
          const { label } = moves[at]!;
          const state = states[at++]!;
          if (typeof state === "string") report(node, state, label);
          else {
            const reachedNode = reach(node, label, state);
            if (reachedNode !== undefined) next.push(reachedNode);
          }
        }
      }
      if (count > maxStates) throw new RangeError(`${world.name}: more than ${maxStates} states`);
    }
    level = next;
  }
  if (problems.length > 0) return found();

  // Whoever is left, and whatever the clients were doing: nothing is lost, and nothing is left over.
  const drainAt = (instants.at(-1) ?? NOW) + DAY;
  const all = [...ends.values()];
  for (let from = 0; from < all.length && problems.length === 0; from += AT_ONCE) {
    await Promise.all(
      all.slice(from, from + AT_ONCE).map(async (node) => {
        const drained = await carryOut(machine, node.state.database, drainAt, world.drain);
        const { events, ...state } = reached(node.state, instants);
        const final = {
          ...state,
          database: drained.database,
          instant: drainAt,
          events: { ...events, drain: drained.events },
        };
        report(node, wrongIn(world.checkEnd, final), "everything that is left is drained");
      }),
    );
  }
  return found();
}

/** The instant at which worlds begin, unless they say otherwise (epoch ms). */
export const NOW = 1_900_000_000_000;

const DAY = 86_400_000;

/** States that are followed at once, so that one pipeline serves them. */
const AT_ONCE = 64;

interface Move {
  readonly from: State;
  readonly label: string;
  /** The state behind it, or what is wrong. */
  readonly make: () => Promise<State | string>;
}

/** Everything that may happen next. */
function movesOf(
  state: State,
  world: World,
  instants: readonly number[],
  machine: Machine,
): Move[] {
  const moves: Move[] = [];
  const instant = instants[state.clockAt] ?? NOW;
  const add = (label: string, make: Move["make"]) => moves.push({ from: state, label, make });
  const send = (step: Step) =>
    machine.on(state.database, (client) => step.send(client, machine, instant));
  const spend = (fault: keyof Faults) => ({ ...state.left, [fault]: state.left[fault] - 1 });
  const withClient = (changed: Client) =>
    state.clients.map((one) => (one.name === changed.name ? changed : one));
  // A copy that comes when the first one was stored and has left is stored once more: Redis knows nothing of the first.
  const repeatedBy = (step: Step, { hasStored }: Client) =>
    step.offers !== undefined && hasStored && !world.isDelayed(state.database, step.offers)
      ? [...state.repeated, step.offers].toSorted()
      : state.repeated;
  const hasStoredBy = (step: Step, { hasStored }: Client, database: Database) =>
    hasStored || (step.offers !== undefined && world.isDelayed(database, step.offers));

  for (const client of state.clients) {
    const { name, step, isDead } = client;
    if (isDead || step === undefined) continue;
    const program = world.clients[name]!;
    const answered = (answer: Answer, database: Database): Client | string => {
      try {
        const hasStored = hasStoredBy(step, client, database);
        return { ...clientOf(name, program, [...client.answers, answer]), hasStored };
      } catch (error) {
        return `${name} failed: ${String(error)}`;
      }
    };
    const isFaulty = world.faulty?.includes(name) ?? true;
    const label = `${name}: ${step.label}`;
    add(label, async () => {
      const { database, ...outcome } = await send(step);
      const isInVain = outcome.error === undefined && step.isInVain(outcome.reply);
      const next = isInVain ? client : answered(answerOf(outcome), database);
      if (typeof next === "string") return next;
      const repeated = repeatedBy(step, client);
      return { ...state, database, clients: withClient(next), repeated };
    });
    if (!isFaulty) continue;
    if (state.left.crashes > 0) {
      const dead = { ...client, isDead: true, answers: [], answered: "", step: undefined };
      add(`${name} crashes`, () =>
        Promise.resolve({ ...state, clients: withClient(dead), left: spend("crashes") }),
      );
    }
    if (state.left.lost > 0) {
      add(`${label}, and its reply is lost`, async () => {
        const { database } = await send(step);
        const hasStored = hasStoredBy(step, client, database);
        const next = step.isResent ? { ...client, hasStored } : answered(LOST, database);
        if (typeof next === "string") return next;
        const repeated = repeatedBy(step, client);
        return { ...state, database, clients: withClient(next), left: spend("lost"), repeated };
      });
      if (!step.isResent) {
        add(`${label} is not sent`, () => {
          const next = answered(LOST, state.database);
          if (typeof next === "string") return Promise.resolve(next);
          return Promise.resolve({ ...state, clients: withClient(next), left: spend("lost") });
        });
      }
    }
    if (state.left.late > 0 && step.isResent) {
      const late = { client: name, step, at: client.answers.length };
      add(`${label} is under way`, () =>
        Promise.resolve({ ...state, late: [...state.late, late], left: spend("late") }),
      );
    }
  }
  for (const late of state.late) {
    add(`${late.client}: ${late.step.label}, a late copy`, async () => {
      const { database } = await send(late.step);
      const sender = state.clients.find(({ name }) => name === late.client)!;
      const hasStored = hasStoredBy(late.step, sender, database);
      const clients = withClient({ ...sender, hasStored });
      const repeated = repeatedBy(late.step, sender);
      return {
        ...state,
        database,
        clients,
        late: state.late.filter((one) => one !== late),
        repeated,
      };
    });
  }
  if (state.clockAt + 1 < instants.length) {
    const then = instants[state.clockAt + 1] ?? NOW;
    add(`the clock shows ${then - NOW} ms`, () =>
      Promise.resolve({ ...state, clockAt: state.clockAt + 1 }),
    );
  }
  return moves;
}

function clientOf(name: string, program: Program, answers: readonly Answer[]): Client {
  const { step, events } = positionOf(program, answers);
  const answered = answers.map(({ text }) => text).join("; ");
  const seen = JSON.stringify(events);
  return { name, answers, answered, seen, isDead: false, hasStored: false, step, events };
}

/** Runs a program alone. */
async function carryOut(
  machine: Machine,
  database: Database,
  instant: number,
  program: Program | undefined,
): Promise<{ readonly database: Database; readonly events: readonly Event[] }> {
  const events: Event[] = [];
  const flow = program?.((...event) => events.push(event));
  let held = database;
  for (let next = flow?.next(); next?.done === false;) {
    const { value: step } = next;
    const outcome = await machine.on(held, (client) => step.send(client, machine, instant));
    held = outcome.database;
    next = outcome.error ? flow?.throw(outcome.error) : flow?.next(outcome.reply);
  }
  return { database: held, events };
}

function reached(state: State, instants: readonly number[]): Reached {
  const { clients, database, repeated } = state;
  return {
    database,
    repeated,
    instant: instants[state.clockAt] ?? NOW,
    events: Object.fromEntries(clients.map(({ name, events }) => [name, events])),
    pending: Object.fromEntries(clients.map(({ name, step }) => [name, step?.label])),
  };
}

/** Equal for states that nobody can tell apart: all that follows is the same. */
function textOfState({ database, clients, late, clockAt, left, repeated }: State): string {
  const parts = [
    textOfDatabase(database),
    ...clients.map(({ answered, isDead, hasStored, step, seen }) => {
      // Nothing more depends on the answers of a client that has ended.
      return `${isDead} ${hasStored} ${step === undefined ? "ended" : answered} ${seen}`;
    }),
    ...late.map(({ client, at }) => `${client} ${at}`).toSorted(),
    `${clockAt} ${JSON.stringify(left)} ${repeated.join(" ")}`,
  ];
  return withoutStreamIds(parts.join("\n"));
}

/** What is wrong in a state. Contents that nobody can read are wrong as well. */
function wrongIn(check: World["check"], state: Reached): string | undefined {
  try {
    return check(state);
  } catch (error) {
    return String(error);
  }
}

const texts = new WeakMap<Database, string>();
function textOfDatabase(database: Database): string {
  let text = texts.get(database);
  if (text === undefined) {
    const keys = [...database].toSorted(([x], [y]) => (x < y ? -1 : 1));
    text = keys.map(([key, one]) => `${key} ${one.text}`).join("\n");
    texts.set(database, text);
  }
  return text;
}

function orderOf(node: Node): string[] {
  const order: string[] = [];
  for (let at: Node | undefined = node; at?.before !== undefined; at = at.before)
    order.push(at.via);
  return order.toReversed();
}

/** How many ways lead from a state to an end. No way comes back, since each command uses something up. */
function ordersFrom(root: Node): bigint {
  const open = [root];
  const seen = new Set<Node>();
  while (open.length > 0) {
    const node = open.at(-1)!;
    const unknown = node.next.filter(({ orders }) => orders === undefined);
    if (unknown.length > 0 && seen.has(node)) throw new Error("an order of commands comes back");
    seen.add(node);
    if (node.orders === undefined && unknown.length === 0) {
      const sum = node.next.reduce((total, { orders }) => total + (orders ?? 0n), 0n);
      node.orders = node.next.length === 0 ? 1n : sum;
    }
    if (node.orders !== undefined) open.pop();
    else open.push(...unknown);
  }
  return root.orders ?? 0n;
}
