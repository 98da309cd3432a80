import { readFileSync, readdirSync } from "node:fs";
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { Delayline } from "../../../src/index.ts";
import { BlockingQueue } from "../../../src/handles/blocking-queue.ts";
import { DeadLetters } from "../../../src/handles/dead-letters.ts";
import { DelayedQueue } from "../../../src/handles/delayed-queue.ts";
import { Flow } from "../../../src/handles/flow.ts";
import { InsertionOrder } from "../../../src/handles/insertion-order.ts";
import { PlainQueue } from "../../../src/handles/plain-queue.ts";
import { Quarantine } from "../../../src/handles/quarantine.ts";
import { ReliableQueue } from "../../../src/handles/reliable-queue.ts";
import { Schedules } from "../../../src/handles/schedules.ts";
import { Delivery } from "../../../src/reliable/consuming/delivery.ts";
import { ROUTES } from "../../../src/tools/dashboard/routes.ts";
import { readPage, ROOT, tableUnder, wordsIn } from "./pages.ts";

// Pages that list what there is: none of it is missing there, and nothing there is missing here.

const CARD = readPage("docs/guide/api-card.md").text;
const OFFERING = sectionOf("Offering, and changing your mind");

test.each([
  [Delayline, sectionOf("The client")],
  [DelayedQueue, OFFERING],
  [Schedules, OFFERING],
  [Flow, OFFERING],
  [Quarantine, OFFERING],
  [InsertionOrder, OFFERING],
  [BlockingQueue, sectionOf("Taking from a plain queue")],
  [PlainQueue, OFFERING + sectionOf("Taking from a plain queue")],
  [ReliableQueue, OFFERING + sectionOf("Taking from a reliable queue")],
  [Delivery, sectionOf("Taking from a reliable queue")],
  [DeadLetters, sectionOf("Taking from a reliable queue")],
])("the card of the API has every method of %o, in its section", ({ prototype }, section) => {
  const methods = methodsOf(prototype);
  expect(methods.length).toBeGreaterThan(0);
  expect(methods.filter((name) => !new RegExp(`\`${name}\\b`).test(section))).toEqual([]);
});

const byText = (a: string, b: string) => (a < b ? -1 : Number(a > b));

test("the dashboard's page has every call, with its method, and no other", () => {
  const routes = Object.entries(ROUTES).flatMap(([path, route]) =>
    Object.keys(route).map((method) => `${method} ${path}`),
  );
  const rows = tableUnder(readPage("docs/guide/dashboard-api.md"), "Calls");
  expect(rows.map(([call]) => wordsIn(call)[0] ?? "").toSorted(byText)).toEqual(
    routes.toSorted(byText),
  );
});

test("stability: the versions are those of the gate", () => {
  const gate = readFileSync(`${ROOT}.ci/run`, "utf8");
  const parts = Array.from(
    gate.matchAll(/steadily part (\d+) (redis|valkey)-(\d+) (\d)/g),
    ([, node, server = "", major, ioredis]) => [node, `${server} ${major}`, ioredis],
  );
  const workflow = readFileSync(`${ROOT}.github/workflows/ci.yml`, "utf8");
  const [, own] = /container: node:(\d+)/.exec(workflow) ?? [];
  const [first = [], ...others] = tableUnder(
    readPage("docs/stability.md"),
    "Versions that are tested",
  );
  expect(first[0]).toBe(own);
  expect(
    others.map(([node, server = "", ioredis]) => [
      node,
      server.toLowerCase().replace(/\.\d+$/, ""),
      ioredis,
    ]),
  ).toEqual(parts);
});

test("every skill has a name, that of its folder, and says when it is of use", () => {
  const folders = readdirSync(`${ROOT}docs/skills`);
  expect(folders.length).toBeGreaterThan(1);
  for (const folder of folders) {
    const { text } = readPage(`docs/skills/${folder}/SKILL.md`);
    const [, name, description = ""] =
      /^---\nname: (.*)\ndescription: (.*)\n---\n/.exec(text) ?? [];
    expect(name).toBe(folder);
    expect(description.length).toBeGreaterThan(50);
    expect(description.length).toBeLessThan(1024);
  }
});

/** A section of the card, up to the next heading. */
function sectionOf(heading: string): string {
  const [, section] = new RegExp(`^## ${heading}\\n(.*?)(?=^## |$(?![^]))`, "ms").exec(CARD) ?? [];
  if (section === undefined) throw new Error(`the card has no section "${heading}"`);
  return section;
}

/** The names of the methods that users call, also inherited ones. */
function methodsOf(prototype: object): string[] {
  const own = Object.entries(Object.getOwnPropertyDescriptors(prototype))
    .filter(([, { value }]) => typeof value === "function")
    .map(([name]) => name)
    .filter((name) => name !== "constructor");
  const parent = Object.getPrototypeOf(prototype) as object;
  const isEnd = parent === Object.prototype || parent === EventEmitter.prototype;
  return isEnd ? own : [...new Set([...own, ...methodsOf(parent)])];
}
