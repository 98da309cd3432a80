import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The files that take longest, mostly by waiting; the longest first. */
const LONG = [
  "fault/fuzz.long.test.ts",
  "fault/sentinel.long.test.ts",
  "packaging/packaging.long.test.ts",
  "fault/partitions/faults-cluster.long.test.ts",
  "fault/partitions/faults-sentinels.long.test.ts",
  "integration/reliable/workers.long.test.ts",
  "fault/partitions/exclusive-change.long.test.ts",
  "fault/partitions/abandoned-change.long.test.ts",
  "fault/partitions/exclusive.long.test.ts",
  "fault/partitions/exclusive-storm.long.test.ts",
  "fault/partitions/exclusive-fences.long.test.ts",
  "fault/partitions/cluster.long.test.ts",
  "fault/hostile-options.long.test.ts",
  "fault/half-open.long.test.ts",
  "fault/call-timeout.long.test.ts",
  "fault/aborts.long.test.ts",
  "fault/partitions/change.long.test.ts",
  "integration/partitions/cluster.long.test.ts",
  "conformance/blocking-queue.long.test.ts",
  "fault/cluster-failover.long.test.ts",
  "fault/troubles.long.test.ts",
  "fault/moved-address.long.test.ts",
  "integration/reliable/groups.test.ts",
  "fault/reliable/sentinel.long.test.ts",
  "fault/reliable/cluster.long.test.ts",
];

/**
 * Starts the long files first, so that none of them runs on alone at the end. Vitest knows durations only from earlier
 * runs on the same machine.
 */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- It is no array's.
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}

function rank({ moduleId }: TestSpecification): number {
  const i = LONG.findIndex((file) => moduleId.endsWith(`/test/${file}`));
  return i === -1 ? LONG.length : i;
}
