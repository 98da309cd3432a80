import { describe, expect, test } from "vitest";
import { readFileSync } from "node:fs";
import { BROUGHT, OWNERS } from "../../../src/words/brought-names.ts";
import { optionFor, suggest, wayOutOf } from "../../../src/words/did-you-mean.ts";

test.each([
  ["lsit", "list"],
  ["deliver", "deliver-now"],
  ["STATS", "stats"],
  ["frobnicate", undefined],
])("%s suggests %s", (word, meant) => {
  expect(suggest(word, ["queues", "list", "stats", "deliver-now"])).toBe(meant);
});

const OFFER = ["key", "onDuplicate", "maxWait", "partitionKey", "signal"];
const RELIABLE = ["codec", "partitions", "group", "leaseTimeout", "maxAttempts", "retry"];
const CLIENT = ["redis", "codec", "callTimeout", "unreachableTimeout"];
const SCHEDULE = ["every", "phase", "cron", "payload", "timeZone", "startAt", "endAt", "limit"];
const BACKFILL = ["from", "to", "limit", "dryRun", "signal"];
const BATCH = ["concurrency", "onError", "limit", "wait"];
const SUBSCRIBE = ["concurrency", "onError", "orderBy", "timeLimit", "grace"];
const RETRY = ["initial", "factor", "max", "jitter"];

describe("an unknown option", () => {
  test.each<[string, readonly string[], string]>([
    ["kye", OFFER, "; did you mean key?"],
    ["onDuplicat", OFFER, "; did you mean onDuplicate?"],
    ["jobId", OFFER, "; did you mean key?"],
    ["singletonKey", OFFER, "; did you mean key?"],
    ["messageGroupId", OFFER, "; did you mean partitionKey?"],
    ["jobId", CLIENT, "; use key, an option of an offer"],
    ["attempts", OFFER, "; use maxAttempts, an option of getReliableQueue"],
    ["attempts", RELIABLE, "; did you mean maxAttempts?"],
    ["backoff", RELIABLE, "; did you mean retry?"],
    ["backoff", OFFER, "; use retry, an option of getReliableQueue"],
    ["lockDuration", RELIABLE, "; did you mean leaseTimeout?"],
    ["visibility_timeout", RELIABLE, "; did you mean leaseTimeout?"],
    ["lease_timeout", CLIENT, "; leaseTimeout is an option of getReliableQueue"],
    ["concurrency", RELIABLE, "; concurrency is an option of subscribe"],
    ["concurency", RELIABLE, "; did you mean concurrency, an option of subscribe?"],
    ["prefetch", RELIABLE, "; use concurrency, an option of subscribe"],
    ["host", CLIENT, "; did you mean redis: { host }?"],
    ["maxRetriesPerRequest", CLIENT, "; did you mean redis: { maxRetriesPerRequest }?"],
    [
      "maxRetriesPerRequest",
      OFFER,
      "; use redis: { maxRetriesPerRequest }, an option of new Delayline",
    ],
    ["prefix", CLIENT, "; did you mean redis: { keyPrefix }?"],
    ["url", CLIENT, "; did you mean redis?"],
    ["removeOnComplete", OFFER, "; leave it out: an acknowledged message is gone"],
    [
      "lifo",
      OFFER,
      "; messages become ready in the order of their deadlines; in a queue whose flow has lanes, the higher priority is first",
    ],
    [
      "delay",
      OFFER,
      "; a delay is the second argument of offer and reschedule, and an option of nack and redrive",
    ],
    ["delay", RETRY, "; did you mean initial?"],
    ["type", RETRY, "; the pauses grow by factor; with 1 they are equal"],
    [
      "ttl",
      OFFER,
      "; messages do not expire; with deliverWithin, an option of an offer, one that comes too late is dropped",
    ],
    [
      "expireIn",
      OFFER,
      "; messages do not expire; with deliverWithin, an option of an offer, one that comes too late is dropped",
    ],
    ["pattern", SCHEDULE, "; did you mean cron?"],
    ["pattern", OFFER, "; messages that recur are offered by queue.schedules"],
    ["pattern", ["prefix"], "; did you mean prefix?"],
    ["every", OFFER, "; messages that recur are offered by queue.schedules"],
    ["interval", SCHEDULE, "; did you mean every?"],
    ["tz", SCHEDULE, "; did you mean timeZone?"],
    ["tz", OFFER, "; use timeZone, an option of schedules and local times"],
    ["start", SCHEDULE, "; did you mean startAt?"],
    ["start", BACKFILL, "; did you mean from?"],
    ["start", CLIENT, "; start is an option of getReliableQueue"],
    ["endDate", SCHEDULE, "; did you mean endAt?"],
    ["until", BACKFILL, "; did you mean to?"],
    ["timeout", SUBSCRIBE, "; did you mean timeLimit?"],
    ["jobTimeout", SUBSCRIBE, "; did you mean timeLimit?"],
    ["jobTimeout", RELIABLE, "; did you mean leaseTimeout?"],
    ["jobTimeout", CLIENT, "; use leaseTimeout, an option of getReliableQueue"],
    ["maxDuration", CLIENT, "; use timeLimit, an option of subscribe of a reliable queue"],
    ["timeLimit", RELIABLE, "; timeLimit is an option of subscribe of a reliable queue"],
    ["gracePeriod", SUBSCRIBE, "; did you mean grace?"],
    ["gracePeriod", CLIENT, "; use close({ handlerTimeout })"],
    ["lockDuration", SUBSCRIBE, "; use leaseTimeout, an option of getReliableQueue"],
    ["maxWait", BATCH, "; did you mean wait?"],
    ["lingerMs", BATCH, "; did you mean wait?"],
    ["batchTimeout", CLIENT, "; use wait, an option of takeMany and subscribeBatch"],
    ["maxWait", CLIENT, "; maxWait is an option of an offer"],
    ["keepHandled", CLIENT, "; keepHandled is an option of getReliableQueue"],
    ["onlyIf", SCHEDULE, "; onlyIf is an option of an offer"],
    ["groupId", RELIABLE, "; did you mean group?"],
    ["groupId", OFFER, "; did you mean partitionKey?"],
    ["frobnicate", OFFER, ""],
  ])("%s of %j%s", (given, known, wayOut) => {
    expect(wayOutOf(given, known)).toBe(wayOut);
  });
});

test("the command line knows them, too", () => {
  expect(optionFor("url", ["redis", "json"])).toBe("redis");
  expect(optionFor("jsno", ["redis", "json"])).toBe("json");
  expect(optionFor("frobnicate", ["redis", "json"])).toBeUndefined();
});

test("each option that is suggested is one in docs/guide/options.md, as is each that has a place", () => {
  const path = new URL("../../../docs/guide/options.md", import.meta.url);
  const documented = new Set(
    [...readFileSync(path, "utf8").matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name),
  );
  const named = [...BROUGHT.flatMap(({ option }) => option ?? []), ...Object.keys(OWNERS)];
  expect(
    named.filter((name) => !documented.has(name) && !["prefix", "payload", "at"].includes(name)),
  ).toEqual([]);
});

test("no name is one of our own options, except those that have several places", () => {
  const several = ["start", "timeout", "maxwait", "handlertimeout"];
  const ours = Object.keys(OWNERS).map((name) => name.toLowerCase());
  const doubled = BROUGHT.flatMap(({ names }) =>
    names.filter((name) => ours.includes(name) && !several.includes(name)),
  );
  expect(doubled).toEqual([]);
});
