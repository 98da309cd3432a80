import { diagnose, type DiagnoseOptions, type Finding } from "../../src/doctor/diagnose.ts";

/** All that the doctor finds. */
export async function diagnosis(options: DiagnoseOptions): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const finding of diagnose(options)) findings.push(finding);
  return findings;
}

/** The findings in short: `error persistence`, with the queue where there is one. */
export function inShort(findings: readonly Finding[]): string[] {
  return findings.map(({ level, check, queue }) =>
    [level, check, queue].filter((word) => word !== undefined).join(" "),
  );
}
