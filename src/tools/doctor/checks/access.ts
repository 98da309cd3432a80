import { shellWord } from "../../view/text.ts";
import type { AccessReport, Closed } from "../looks/access-report.ts";
import { agree, asAdmin, abridged, named, redisCli, type Finding } from "./finding.ts";

const CHECK = "access";

/** Checks what the library needs and the user may not do. */
export function* checkAccess(access: AccessReport, isAnyReliable: boolean): Generator<Finding> {
  const { endpoint, name: user, refused, untried } = access;
  const { address } = endpoint;
  const setUser = (rules: string) => allow(access, rules);
  for (const { check, why } of GROUPS) {
    const unknown = refused.filter((one) => one.isUnknown && groupOf(one)?.why === why);
    if (unknown.length === 0) continue;
    const isNeeded = unknown.some(
      ({ neededBy }) => neededBy === "all" || (neededBy === "reliable" && isAnyReliable),
    );
    const names = [...new Set(unknown.map(({ rule }) => rule.split("|")[0]))].join(", ");
    yield {
      level: isNeeded ? "error" : "notice",
      check,
      what: `${address} does not know ${unknown.map(({ rule }) => rule).join(", ")}`,
      why,
      repair: `remove rename-command for ${names} from redis.conf, or use a Redis that has these commands; access rules do not help`,
    };
  }
  for (const [neededBy, why] of Object.entries(NEEDED)) {
    const rules = refused.filter((one) => !one.isUnknown && one.neededBy === neededBy);
    if (rules.length === 0) continue;
    const isNeeded = neededBy === "all" || (neededBy === "reliable" && isAnyReliable);
    yield {
      level: isNeeded ? "error" : "notice",
      check: CHECK,
      what: `the user ${user} may not run ${rules.map(({ rule }) => rule).join(", ")} on ${address}`,
      why,
      repair: setUser(rules.map(({ rule }) => aclRule(`+${rule}`)).join(" ")),
    };
  }
  yield* checkNames(access, setUser);
  if (untried.length > 0) {
    yield {
      level: "notice",
      check: CHECK,
      what: `whether the user ${user} may run ${untried.join(", ")} on ${address} could not be tried without side effects`,
      why: "Redis before 7.0 has no command to ask",
      repair: `compare ${redisCli(access.isAdmin ? endpoint : asAdmin(endpoint), `ACL GETUSER ${shellWord(user)}`)} with the access rules in docs/operations/setting-up.md`,
    };
  }
}

/** The command that gives the user these rules, and what keeps them. */
function allow({ endpoint, name, isAdmin, kept }: AccessReport, rules: string): string {
  const at = isAdmin ? endpoint : asAdmin(endpoint);
  const set = redisCli(at, `ACL SETUSER ${shellWord(name)} ${rules}`);
  const keep = {
    aclfile: `then keep it: ${redisCli(at, "ACL SAVE")}`,
    "redis.conf": `then keep it: ${redisCli(at, "CONFIG REWRITE")}`,
    nowhere: "and add it where this server is configured: a restart forgets it",
  }[kept];
  return `${isAdmin ? "allow it" : "as an administrator, allow it"}: ${set}; ${keep}`;
}

/** One finding for each kind of rule, whatever the number of queues. */
function* checkNames(access: AccessReport, setUser: (rules: string) => string): Generator<Finding> {
  for (const { of, isPartitioned, level, why } of CLOSED) {
    const closed = access.closed.filter(
      (one) =>
        one.of === of && (isPartitioned === undefined || one.isPartitioned === isPartitioned),
    );
    if (closed.length === 0) continue;
    const queues = [...new Set(closed.map(({ queue }) => queue))];
    const rules = [...new Set(closed.map(({ rule }) => rule))];
    const [only, ...others] = queues;
    yield {
      level,
      check: CHECK,
      ...(others.length === 0 ? { queue: only } : { queues }),
      what: `the user ${access.name} may not use the ${WHAT[of]} of ${others.length === 0 ? "the queue" : named(queues)} on ${access.endpoint.address}: ${abridged(rules)} ${agree(rules.length, "is", "are")} missing`,
      why,
      repair: setUser(rules.map(aclRule).join(" ")),
    };
  }
}

const WHAT: Readonly<Record<Closed["of"], string>> = {
  keys: "keys",
  channel: "channel",
  notices: "channel for what was revoked",
  "partition keys": "keys of the partitions",
  "partition channels": "channels of the partitions",
  "partition notices": "channel for changes of the partitions",
};

const OFFERS_REFUSED =
  "Redis refuses each offer whose message would be the first to fall due, because it cannot publish the wake-up; other messages may be up to a second late";

/** The consequences if a rule is missing. */
const CLOSED: readonly {
  readonly of: Closed["of"];
  readonly isPartitioned?: boolean;
  readonly level: Finding["level"];
  readonly why: string;
}[] = [
  { of: "keys", level: "error", why: "Redis refuses the scripts that touch these keys (NOPERM)" },
  { of: "channel", level: "error", why: OFFERS_REFUSED },
  {
    of: "partition keys",
    isPartitioned: true,
    level: "error",
    why: "Redis refuses the scripts that touch these keys (NOPERM)",
  },
  {
    of: "partition keys",
    isPartitioned: false,
    level: "warning",
    why: "offers and consumers work; but line.stats, the command line, the dashboard and metrics ask there whether the queue has partitions, and are refused (NOPERM)",
  },
  { of: "partition channels", level: "error", why: OFFERS_REFUSED },
  {
    of: "notices",
    level: "warning",
    why: "revoke works; but a handler whose message is revoked hears of it seconds later, with its next sign of life",
  },
  {
    of: "partition notices",
    level: "warning",
    why: "processes learn seconds late that another one has joined, or that the number of partitions changes, and each emits an error event",
  },
];

type Refused = AccessReport["refused"][number];

/** The consequences if a server lacks a command. The first group that matches applies. */
const GROUPS: readonly {
  readonly check: "scripts" | "access";
  readonly isOf: (refused: Refused) => boolean;
  readonly why: string;
}[] = [
  {
    check: "scripts",
    isOf: ({ rule }) => rule.startsWith("eval"),
    why: "every move of a message is a script: nothing is offered, moved or taken",
  },
  {
    check: "access",
    isOf: ({ neededBy }) => neededBy === "exclusive",
    why: "partitioned queues with exclusive consumers need it, to end the connection of a process that stood still",
  },
  {
    check: "access",
    isOf: ({ neededBy }) => neededBy === "reliable",
    why: "reliable queues need it; plain queues work without it",
  },
  {
    check: "access",
    isOf: ({ rule }) => rule.startsWith("client|"),
    why: "a consumer that waits for messages needs the id of its connection to end the wait, so no consumer can wait; messages are still offered and moved",
  },
  {
    check: "access",
    isOf: ({ rule }) => rule === "subscribe",
    why: "wake-ups do not arrive: messages are up to a second late, and each process emits an error event",
  },
  {
    check: "access",
    isOf: () => true,
    why: "every call and script that needs it is refused, with an error event: no message is lost, but none moves on there",
  },
];

function groupOf(refused: Refused): (typeof GROUPS)[number] | undefined {
  return GROUPS.find(({ isOf }) => isOf(refused));
}

/** An access rule as a shell takes it: `|`, `~` and `&` are quoted. */
function aclRule(rule: string): string {
  return /^\+\w+$/.test(rule) ? rule : shellWord(rule);
}

/** The consequences if the user may not run a command, by the queues that need it. */
const NEEDED = {
  all: "every call and script that needs it is refused (NOPERM; in scripts ERR on Redis 7.0 and before), with an error event: no message is lost, but none moves on there",
  reliable: "reliable queues need it",
  exclusive:
    "partitioned queues with exclusive consumers need it, to end the connection of a process that stood still",
};
