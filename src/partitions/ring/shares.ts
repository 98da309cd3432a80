import { hashOf, mix } from "../../queue/message/bucket.ts";

// How the processes that serve a queue divide the work on its partitions. There is no coordinator: every process
// computes the same result from the names of the members, in whatever order they are listed, and listed twice or once.
// Processes that know different members divide the work differently for a while.

/**
 * The members that transfer the due messages of a partition, first choice first: the `count` members that score highest
 * for it (rendezvous hashing). When a member joins or leaves, only the positions that it takes or gives up change.
 */
export function movers(members: readonly string[], partition: number, count = 2): string[] {
  return highest(candidatesOf(members), partition, count);
}

/**
 * The partitions in the share of `self`, if each belongs to the `perPartition` members that score highest for it, as in
 * {@link movers}.
 *
 * A member that would have no partition joins in the one that it scores highest for, so no member is idle. `self`
 * counts as a member even if it is not listed yet.
 */
export function sharesOf(
  members: readonly string[],
  self: string,
  partitions: number,
  perPartition: number,
): number[] {
  const candidates = candidatesOf([...members, self]);
  const all = Array.from({ length: partitions }, (_, partition) => partition);
  const shares = all.filter((partition) =>
    highest(candidates, partition, perPartition).includes(self),
  );
  if (shares.length > 0) return shares;
  const hash = hashOf(self);
  return all.toSorted((a, b) => scoreOf(hash, b) - scoreOf(hash, a)).slice(0, 1);
}

/**
 * The holder of each partition, if only one member consumes it; returns an empty array if there are no members.
 *
 * Members hold equally many partitions, give or take one. Pairs of a member and a partition are settled from the
 * highest score down; a member that has its full number gets no more. When a member joins or leaves, some partitions of
 * the other members change hands as well, to keep the numbers even.
 */
export function holdersOf(members: readonly string[], partitions: number): string[] {
  const candidates = candidatesOf(members);
  if (candidates.length === 0) return [];
  const scores = Uint32Array.from({ length: candidates.length * partitions }, (_, pair) =>
    scoreOf(candidates[Math.floor(pair / partitions)]!.hash, pair % partitions),
  );
  const pairs = scores.map((_, pair) => pair).toSorted((a, b) => scores[b]! - scores[a]! || a - b);

  const holders: string[] = Array.from({ length: partitions });
  const counts = candidates.map(() => 0);
  const fewest = Math.floor(partitions / candidates.length);
  // This many members hold one more than the others: those whose scores come up first.
  let extra = partitions % candidates.length;
  for (const pair of pairs) {
    const index = Math.floor(pair / partitions);
    const partition = pair % partitions;
    const isFull = counts[index]! > fewest || (counts[index] === fewest && extra === 0);
    if (isFull || holders[partition] !== undefined) continue;
    if (counts[index] === fewest) extra--;
    counts[index]! += 1;
    holders[partition] = candidates[index]!.name;
  }
  return holders;
}

/** A member, and the hash of its name. */
interface Candidate {
  readonly name: string;
  readonly hash: number;
}

/** Every member once, ordered by name: the order decides between equal scores. */
function candidatesOf(members: readonly string[]): Candidate[] {
  return [...new Set(members)].toSorted().map((name) => ({ name, hash: hashOf(name) }));
}

function highest(candidates: readonly Candidate[], partition: number, count: number): string[] {
  return candidates
    .map(({ name, hash }) => ({ name, score: scoreOf(hash, partition) }))
    .toSorted((a, b) => b.score - a.score)
    .slice(0, count)
    .map(({ name }) => name);
}

/** The score of a partition for the member with this hash. */
function scoreOf(hash: number, partition: number): number {
  return mix(hash ^ mix(partition + 1));
}
