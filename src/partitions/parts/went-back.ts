import { RedisError } from "../../errors.ts";
import { beginChange, readFact } from "../../lua/partitions/fact.ts";
import { isInUse } from "../../lua/partitions/partition.ts";
import { MAX_PARTITIONS } from "../../queue/options.ts";
import {
  formatFact,
  hasOrdinary,
  isLater,
  ORDINARY,
  parseFact,
  partitionsOf,
  type Fact,
} from "../ring/fact.ts";
import type { Part } from "./part.ts";
import { prepare } from "./prepare.ts";

/**
 * Begins to gather the messages of a queue whose Redis, or one of its servers, went back to an earlier state: a failover
 * to a replica that lags, a restart from an old copy. Returns the fact that partition 0 holds afterwards.
 *
 * This process knows a newer fact than some partition holds. Writing that fact as it stands would be wrong: messages are where the
 * older one says, and no process would look for them there. So a new fact is written. It states the number to reach, and that until
 * then a message may be in any partition ever heard of (`scattered`). The first process that notices finishes it, as any abandoned
 * change.
 */
export async function gather(
  known: Fact,
  at: (partition: number) => Part,
  notice: string,
  timeout: number,
): Promise<string> {
  for (;;) {
    const held = await readAll(known, at);
    const first = held.get(0) ?? "";
    const facts = Array.from(held.values(), (text) => parseFact(text ?? ""));
    const seen = [known, ...facts.filter((fact) => fact !== undefined)];
    const newest = seen.reduce((one, other) => (isLater(other, one) ? other : one));
    // Another process was faster.
    if (isLater(parseFact(first) ?? known, known)) return first;
    const isWide = hasOrdinary(newest) || (await isOrdinaryLeft(at(ORDINARY), first));
    const next: Fact = {
      ...newest,
      epoch: newest.epoch + 1,
      from: Math.max(...seen.map(partitionsOf)),
      state: "moving",
      scattered: isWide ? "everywhere" : "any",
    };
    await prepare(at, next, { pausedAs: first === "" && isWide ? ORDINARY : 0 });
    const [fact, holding] = [next, { ...next, state: "holding" } as const].map(formatFact);
    const args = { fact: fact!, holding: holding!, expected: first, notice, timeout };
    const found = await at(0).queue.read("gather the messages of", beginChange, args);
    if (found !== fact && found !== holding) continue;
    // The ordinary queue has nothing to do with it, and need not be asked about again.
    if (!isWide) await noteAt(at(ORDINARY), found);
    return found;
  }
}

/**
 * The fact that each partition holds, of all that may hold messages by one of these facts; undefined for one without a
 * fact, or whose server does not reply.
 */
async function readAll(
  known: Fact,
  at: (partition: number) => Part,
): Promise<Map<number, string | undefined>> {
  const held = new Map<number, string | undefined>();
  const read = async (partition: number) => {
    const reading = at(partition).queue.read("look into", readFact, {});
    // Without partition 0 nothing can be done. Of another one that is down, its neighbours know as much.
    held.set(partition, await (partition === 0 ? reading : reading.catch(() => undefined)));
  };
  let count = 0;
  for (let wanted = partitionsOf(known); count < wanted;) {
    await Promise.all(Array.from({ length: wanted - count }, (_, i) => read(count + i)));
    count = wanted;
    const facts = Array.from(held.values(), (text) => parseFact(text ?? ""));
    wanted = Math.max(...facts.map((fact) => (fact === undefined ? 0 : partitionsOf(fact))));
    // Each partition that ever was in use holds a fact.
    if (wanted <= count && held.get(count - 1) !== undefined) {
      wanted = Math.min(count + 1, MAX_PARTITIONS);
    }
  }
  return held;
}

async function noteAt({ queue }: Part, knownFact: string): Promise<void> {
  // If it fails, the next process asks again.
  await queue.read("look into", readFact, {}, { knownFact }).catch(() => {});
}

/**
 * Whether Redis went back to before the ordinary queue was taken in. What is beside that queue tells: it hears of the
 * change that takes it in, and of the end, and of no other.
 */
async function isOrdinaryLeft({ queue }: Part, first: string): Promise<boolean> {
  try {
    const text = await queue.read("look into", readFact, {});
    const [fact, atFirst] = [parseFact(text ?? ""), parseFact(first)];
    // Partition 0 hears first of the change that takes it in.
    const isUntold = first === "" || (atFirst !== undefined && hasOrdinary(atFirst));
    const isBefore = fact === undefined ? isUntold : fact.state !== "stable" && hasOrdinary(fact);
    return isBefore && (await queue.read("look at", isInUse, { asked: "used" }));
  } catch (error) {
    // Whoever may use the partitions only has never had an ordinary queue.
    if (error instanceof RedisError && error.reply === "NOPERM") return false;
    throw error;
  }
}
