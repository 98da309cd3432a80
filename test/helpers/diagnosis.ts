import { expect } from "vitest";
import { diagnose, type DiagnoseOptions, type Finding } from "../../src/tools/doctor/diagnose.ts";
import { LAWS } from "../../src/tools/view/health.ts";

/** Runs the doctor and collects its findings. */
export async function diagnosis(options: DiagnoseOptions): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const finding of diagnose(options)) findings.push(finding);
  return findings;
}

/**
 * One line for each finding: `error persistence`, followed by the queue if it concerns one. What is a problem of queues
 * everywhere has to be as bad here.
 */
export function inShort(findings: readonly Finding[]): string[] {
  for (const { check, level } of findings)
    if (check in LAWS) expect(level, check).toBe(LAWS[check as keyof typeof LAWS].level);
  return findings.map(({ level, check, queue }) =>
    [level, check, queue].filter((word) => word !== undefined).join(" "),
  );
}
