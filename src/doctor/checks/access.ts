import type { AccessReport } from "../looks/access-report.ts";
import type { Finding } from "./finding.ts";
import { quoted, redisCli } from "./repair.ts";
import { count } from "./words.ts";

const CHECK = "access";

/** What the user may not do that the library needs. */
export function* checkAccess(access: AccessReport, isAnyReliable: boolean): Generator<Finding> {
  const { address, user = "<user>", refused, untried } = access;
  const setUser = (rules: string) =>
    `${redisCli(address, `ACL SETUSER ${user} ${rules}`)}, then ACL SAVE or CONFIG REWRITE`;
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
      repair: `remove rename-command for ${names} from redis.conf, or use a Redis that has them; access rules do not help`,
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
      repair: setUser(
        rules.map(({ rule }) => (rule.includes("|") ? quoted(`+${rule}`) : `+${rule}`)).join(" "),
      ),
    };
  }
  yield* checkNames(access, setUser);
  if (untried.length > 0) {
    yield {
      level: "notice",
      check: CHECK,
      what: `whether the user ${user} may run ${untried.join(", ")} on ${address} could not be tried without an effect`,
      why: "before Redis 7.0 there is no way to ask",
      repair: `compare ${redisCli(address, `ACL GETUSER ${user}`)} with the access rules in docs/operations.md`,
    };
  }
}

function* checkNames(
  { address, user = "<user>", closed }: AccessReport,
  setUser: (rules: string) => string,
): Generator<Finding> {
  for (const queue of new Set(closed.map((one) => one.queue))) {
    const names = closed.filter((one) => one.queue === queue);
    const rules = names.map(({ kind, name }) => quoted(`${kind === "key" ? "~" : "&"}${name}`));
    const isDeaf = names.every(({ kind }) => kind === "channel");
    yield {
      level: isDeaf ? "warning" : "error",
      check: CHECK,
      queue,
      what: `the user ${user} may not use ${count(names.length, "name")} of the queue on ${address}: ${names.map(({ name }) => name).join(", ")}`,
      why: isDeaf
        ? "wake-ups do not arrive: messages are up to a second late"
        : "scripts that touch these keys are refused",
      repair: setUser(rules.join(" ")),
    };
  }
}

type Refused = AccessReport["refused"][number];

/** Commands that a server may lack, and what it means. The first group that one is of tells. */
const GROUPS: readonly {
  readonly check: "scripts" | "access";
  readonly isOf: (refused: Refused) => boolean;
  readonly why: string;
}[] = [
  {
    check: "scripts",
    isOf: ({ rule }) => rule.startsWith("eval"),
    why: "all moves of messages are scripts: nothing is offered, moved or taken",
  },
  {
    check: "access",
    isOf: ({ neededBy }) => neededBy === "exclusive",
    why: "queues in partitions that are consumed exclusively need it, to end the connection of a process that was paused",
  },
  {
    check: "access",
    isOf: ({ neededBy }) => neededBy === "reliable",
    why: "queues with acknowledgement need it; others go on",
  },
  {
    check: "access",
    isOf: ({ rule }) => rule.startsWith("client|"),
    why: "a consumer that waits for messages asks for the id of its connection, to end the wait: nobody takes so. Messages are offered and moved all the same",
  },
  {
    check: "access",
    isOf: ({ rule }) => rule === "subscribe",
    why: "wake-ups do not arrive: messages are up to a second late",
  },
  {
    check: "access",
    isOf: () => true,
    why: "what needs it is refused, in scripts too, with an error event: nothing is lost, but it does not go on",
  },
];

function groupOf(refused: Refused): (typeof GROUPS)[number] | undefined {
  return GROUPS.find(({ isOf }) => isOf(refused));
}

/** Who needs what is refused, and what it means for them. */
const NEEDED = {
  all: "what needs it is refused (NOPERM; in scripts ERR on Redis 7.0 and before), with an error event: nothing is lost, but nothing goes on",
  reliable: "queues with acknowledgement need it",
  exclusive:
    "queues in partitions that are consumed exclusively need it, to end the connection of a process that was paused",
};
