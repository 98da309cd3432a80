import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test("`npm run walks` counts the files and functions that a call goes through", async () => {
  const args = ["--import", "tsx", "scripts/walks/index.ts", "cancel(key)", "--list"];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const [, files = "", own = "", functions = ""] =
    /^\| cancel\(key\) \| (\d+) \((\d+)\) \| (\d+) \|$/m.exec(stdout) ?? [];
  const listed = [...stdout.matchAll(/^ {4}(\S+\.ts): (.*)$/gm)];
  expect(Number(own)).toBeGreaterThan(0);
  expect(Number(own)).toBeLessThan(Number(files));
  expect(Number(functions)).toBeGreaterThan(Number(files));
  const ofFirst = listed.slice(0, Number(files));
  expect(ofFirst.map(([, file]) => file)).toContain("lua/script.ts");
  expect(ofFirst.flatMap(([, , names = ""]) => names.split(", "))).toHaveLength(Number(functions));
  // What ran in a queue with partitions follows.
  expect(listed.length).toBeGreaterThan(2 * Number(files));
});
