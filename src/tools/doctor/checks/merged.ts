import { shellWord } from "../../view/text.ts";
import { named, type Finding } from "./finding.ts";

/**
 * Makes one finding of those that say the same of more than three queues: they have one cause, such as a worker that is
 * down. Keeps the order of the others.
 */
export function* merged(findings: readonly Finding[]): Generator<Finding> {
  const groups = new Map<string, Finding[]>();
  for (const finding of findings) {
    const { level, check, queue, why } = finding;
    const kind = queue === undefined ? String(groups.size) : JSON.stringify([level, check, why]);
    groups.set(kind, [...(groups.get(kind) ?? []), finding]);
  }
  for (const group of groups.values()) {
    const queues = [...new Set(group.flatMap(({ queue }) => queue ?? []))];
    if (queues.length <= MOST_ALONE) yield* group;
    else yield mergedInto(group, queues);
  }
}

function mergedInto(group: readonly Finding[], queues: readonly string[]): Finding {
  const [first] = group as [Finding];
  const { level, check, queue = "", what, why } = first;
  return {
    level,
    check,
    queues,
    what: `${named(queues)}; in the first: ${what}`,
    why,
    repair: repairOfAll(group, queue, queues),
  };
}

/** The repair of the first queue, with a loop over all queues instead of each command about one queue. */
function repairOfAll(group: readonly Finding[], queue: string, queues: readonly string[]): string {
  const [first] = group as [Finding];
  const { repair } = first;
  if (group.every((one) => one.repair === repair)) return repair;
  const word = shellWord(queue);
  const loop = repair.replaceAll(/`(npx delayline [^`]*)`/g, (whole, command: string) => {
    const words = command.split(" ");
    const at = words.indexOf(word);
    if (at === -1) return whole;
    const body = words.with(at, '"$queue"').join(" ");
    return `\`for queue in ${queues.map(shellWord).join(" ")}; do ${body}; done\``;
  });
  return loop === repair ? `${repair}; and the same for the other queues` : loop;
}

/** Queues with the same trouble that are still told one by one. */
const MOST_ALONE = 3;
