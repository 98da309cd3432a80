import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { causeOf, type Cause } from "../../../src/inside.ts";
import { LAWS, type Problem } from "../../../src/tools/view/health.ts";
import { worstOf } from "../../../src/tools/view/severity.ts";
import {
  refusal,
  refusalInWords,
  silence,
  troubleInWords,
} from "../../../src/tools/view/trouble.ts";

const at = (instant: number) => `<${instant}>`;

const causeIn = (message: string) => causeOf(new Error(message)) as Cause;

test("a silent Redis: since when, and why if that is known", () => {
  expect(troubleInWords(silence(5, undefined), at)).toBe("Redis has not answered since <5>.");
  expect(troubleInWords(silence(undefined, undefined), at)).toBe("Redis does not answer.");
  expect(troubleInWords(silence(5, causeIn("connect ECONNREFUSED")), at)).toMatch(
    /^Redis has not answered since <5>\. It is not there: .*\. Start the server/,
  );
});

test.each([
  ["MISCONF Redis is configured to save", /disk.*: nothing is offered or moved$/],
  ["OOM command not allowed", /memory.*: nothing is offered, and what is due still becomes ready$/],
])("what it means that Redis replies %s", (reply, expected) => {
  const cause = causeIn(`ReplyError: ${reply}`);
  expect(refusalInWords(cause)).toMatch(expected);
  expect(refusal(cause)).toMatchObject({ level: "error", kind: "refusing" });
});

test("the worst of all decides", () => {
  expect(worstOf(["notice", "error", "warning"])).toBe("error");
  expect(worstOf(["notice", "warning"])).toBe("warning");
  expect(worstOf([])).toBeUndefined();
});

/** The alerts that are about a problem which every face judges. */
const ALERTS: Readonly<Record<string, Problem>> = {
  DelaylineOverdue: "overdue",
  DelaylineNoTransferTask: "no-transfer",
  DelaylineBacklog: "backlog",
  DelaylineLongInFlight: "long-in-flight",
  DelaylineDeadLetters: "dead-letters",
  DelaylineQuarantine: "quarantine",
  DelaylineUnplanned: "unplanned",
  DelaylinePaused: "paused",
};

test("the alerts are as severe as the problems that they are about", () => {
  const path = new URL("../../../examples/monitoring/alerts.yml", import.meta.url);
  const { groups } = parse(readFileSync(path, "utf8")) as {
    groups: { rules: { alert: string; labels: { severity: string } }[] }[];
  };
  const severities = new Map(
    groups.flatMap(({ rules }) => rules.map(({ alert, labels }) => [alert, labels.severity])),
  );
  const found = Object.keys(ALERTS).map((alert) => [alert, severities.get(alert)]);
  const expected = Object.entries(ALERTS).map(([alert, problem]) => [
    alert,
    LAWS[problem].level === "error" ? "critical" : "warning",
  ]);
  expect(found).toEqual(expected);
});
