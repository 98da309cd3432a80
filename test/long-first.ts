import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The files that take longest, mostly by waiting; the longest first. */
const LONG = [
  "fault/fuzz.test.ts",
  "fault/sentinel.test.ts",
  "packaging/packaging.test.ts",
  "fault/partitions/faults-cluster.test.ts",
  "fault/partitions/faults-sentinels.test.ts",
  "integration/reliable/workers.test.ts",
  "fault/partitions/exclusive-change.test.ts",
  "fault/partitions/abandoned-change.test.ts",
  "fault/partitions/exclusive.test.ts",
  "fault/partitions/exclusive-storm.test.ts",
  "fault/partitions/exclusive-fences.test.ts",
  "fault/partitions/cluster.test.ts",
  "fault/hostile-options.test.ts",
  "fault/half-open.test.ts",
  "fault/call-timeout.test.ts",
  "fault/aborts.test.ts",
  "fault/partitions/change.test.ts",
  "integration/partitions/cluster.test.ts",
  "conformance/blocking-queue.test.ts",
  "fault/cluster-failover.test.ts",
  "fault/troubles.test.ts",
  "fault/moved-address.test.ts",
  "integration/reliable/groups.test.ts",
  "fault/reliable/sentinel.test.ts",
  "fault/reliable/cluster.test.ts",
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
