import { diagnose, type DiagnoseOptions, type Finding } from "../../src/tools/doctor/diagnose.ts";

/** Runs the doctor and collects its findings. */
export async function diagnosis(options: DiagnoseOptions): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const finding of diagnose(options)) findings.push(finding);
  return findings;
}

/** One line for each finding: `error persistence`, followed by the queue if it concerns one. */
export function inShort(findings: readonly Finding[]): string[] {
  return findings.map(({ level, check, queue }) =>
    [level, check, queue].filter((word) => word !== undefined).join(" "),
  );
}
