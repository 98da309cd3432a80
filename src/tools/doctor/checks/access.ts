import { shellWord } from "../../inspect/text.ts";
import type { AccessReport } from "../looks/access-report.ts";
import { count, redisCli, type Finding } from "./finding.ts";

const CHECK = "access";

/** Checks what the library needs and the user may not do. */
export function* checkAccess(access: AccessReport, isAnyReliable: boolean): Generator<Finding> {
  const { address, user = "<user>", refused, untried } = access;
  const setUser = (rules: string) =>
    `allow it: ${redisCli(address, `ACL SETUSER ${user} ${rules}`)}; then keep the rule with ACL SAVE or CONFIG REWRITE`;
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
      repair: `compare ${redisCli(address, `ACL GETUSER ${user}`)} with the access rules in docs/operations/setting-up.md`,
    };
  }
}

function* checkNames(
  { address, user = "<user>", closed }: AccessReport,
  setUser: (rules: string) => string,
): Generator<Finding> {
  for (const queue of new Set(closed.map((one) => one.queue))) {
    const names = closed.filter((one) => one.queue === queue);
    const rules = names.map(({ kind, name }) => aclRule(`${kind === "key" ? "~" : "&"}${name}`));
    const isDeaf = names.every(({ kind }) => kind === "channel");
    yield {
      level: isDeaf ? "warning" : "error",
      check: CHECK,
      queue,
      what: `the user ${user} may not use ${count(names.length, "name")} of the queue on ${address}: ${names.map(({ name }) => name).join(", ")}`,
      why: isDeaf
        ? "wake-ups do not arrive: messages are up to a second late"
        : "Redis refuses the scripts that touch these keys",
      repair: setUser(rules.join(" ")),
    };
  }
}

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
    why: "wake-ups do not arrive: messages are up to a second late",
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
  return rule.startsWith("+") && !rule.includes("|") ? rule : shellWord(rule);
}

/** The consequences if the user may not run a command, by the queues that need it. */
const NEEDED = {
  all: "every call and script that needs it is refused (NOPERM; in scripts ERR on Redis 7.0 and before), with an error event: no message is lost, but none moves on there",
  reliable: "reliable queues need it",
  exclusive:
    "partitioned queues with exclusive consumers need it, to end the connection of a process that stood still",
};
