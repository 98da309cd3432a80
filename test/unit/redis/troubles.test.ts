import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RedisError } from "../../../src/errors.ts";
import { EarlyEndError, ofMovedSlot } from "../../../src/failure.ts";
import { Troubles, type Work } from "../../../src/redis/troubles.ts";

let events: string[];
let troubles: Troubles;

beforeEach(() => {
  vi.useFakeTimers();
  events = [];
  troubles = new Troubles({
    report: ({ message }) => events.push(message),
    onRecovered: ({ error, duration }) => events.push(`${duration} ms: ${error.message}`),
  });
});

afterEach(() => {
  vi.useRealTimers();
});

/** The reports since the last call, without the way out at their ends. */
function news(): string[] {
  return events.splice(0).map((text) => text.replace(/; (?!connect).*/, ""));
}

const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:6379"), {
  code: "ECONNREFUSED",
});
const failure = (doing: string, error: Error) => new RedisError(doing, error);
const cut = (doing: string) => failure(doing, new Error("Connection is closed."));
const reset = (doing: string) =>
  failure(doing, Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
const refusal = (doing: string, message: string) =>
  failure(doing, Object.assign(new Error(message), { name: "ReplyError" }));

const refuseTake = (work: Work) => work.failed(refusal("cannot take", "WRONGTYPE no list"));

const GAVE_UP = "Too many Cluster redirections. Last error: ReplyError:";

const UNREACHABLE = "cannot reach Redis: connect ECONNREFUSED 127.0.0.1:6379";

test("an unreachable Redis is one trouble, however many works meet it and however often", () => {
  const works = [troubles.work(), troubles.work(), troubles.work()] as const;
  for (let attempt = 0; attempt < 5; attempt++) {
    for (const work of works) work.failed(failure("cannot transfer", refused));
    works[0].unreachable(refused);
    vi.advanceTimersByTime(1000);
  }
  expect(news()).toEqual([UNREACHABLE]);

  works[0].succeeded();
  works[1].succeeded();
  expect(news()).toEqual([]);
  works[2].succeeded();
  expect(news()).toEqual([`5000 ms: ${UNREACHABLE}`]);
  for (const work of works) work.succeeded();
  expect(news()).toEqual([]);

  works[1].failed(failure("cannot take", refused));
  expect(news()).toEqual([UNREACHABLE]);
});

test("the report waits a moment for the cause", () => {
  const [taker, connection] = [troubles.work(), troubles.work()];
  taker.failed(cut("cannot take"));
  taker.failed(reset("cannot take"));
  connection.unreachable(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
  vi.advanceTimersByTime(50);
  expect(news()).toEqual([]);
  connection.unreachable(refused);
  expect(news()).toEqual([UNREACHABLE]);
  vi.advanceTimersByTime(10_000);
  expect(news()).toEqual([]);
});

test("a connection that ends before any reply is the cause only if nothing tells more in a moment", () => {
  const early = new EarlyEndError("the connection was closed before Redis replied");
  const [taker, connection] = [troubles.work(), troubles.work()];
  // A server that is going down: the next attempt is refused.
  taker.failed(cut("cannot take"));
  connection.unreachable(early);
  vi.advanceTimersByTime(50);
  connection.unreachable(refused);
  expect(news()).toEqual([UNREACHABLE]);
  for (const work of [taker, connection]) work.succeeded();
  news();
  // A server that speaks TLS, for example, ends every attempt.
  connection.unreachable(early);
  vi.advanceTimersByTime(300);
  expect(news()).toEqual(["cannot reach Redis: the connection was closed before Redis replied"]);
});

test("without a cause only the first failure is reported", () => {
  const taker = troubles.work();
  taker.failed(cut("cannot take"));
  vi.advanceTimersByTime(300);
  expect(news()).toEqual(["cannot take: Connection is closed."]);
  taker.failed(failure("cannot take", refused));
  taker.succeeded();
  expect(news()).toEqual(["300 ms: cannot take: Connection is closed."]);
});

test("a trouble that is over before its report is still reported", () => {
  const taker = troubles.work();
  taker.failed(cut("cannot take"));
  vi.advanceTimersByTime(20);
  taker.succeeded();
  const message = "cannot take: Connection is closed.";
  expect(news()).toEqual([message, `20 ms: ${message}`]);
  expect(vi.getTimerCount()).toBe(0);
});

test("close reports a trouble that waits for its cause, and nothing else", () => {
  const taker = troubles.work();
  taker.failed(cut("cannot take"));
  troubles.close();
  troubles.close();
  taker.succeeded();
  expect(news()).toEqual(["cannot take: Connection is closed."]);
  expect(vi.getTimerCount()).toBe(0);
});

test("a work that is not tried again neither prolongs nor ends a trouble", () => {
  const [taker, transfers, tidier] = [troubles.work(), troubles.work(), troubles.work()];
  taker.failed(failure("cannot take", refused));
  taker.stopped();
  expect(news()).toEqual([UNREACHABLE]);
  troubles.heard();
  expect(news()).toEqual([`0 ms: ${UNREACHABLE}`]);

  transfers.failed(failure("cannot transfer", refused));
  tidier.failed(failure("cannot tidy", refused));
  tidier.stopped();
  troubles.heard();
  expect(news()).toEqual([UNREACHABLE]);
  transfers.succeeded();
  expect(news()).toEqual([`0 ms: ${UNREACHABLE}`]);

  // Stopping without trouble changes nothing.
  taker.stopped();
  troubles.heard();
  expect(news()).toEqual([]);
});

test("a refusal is a trouble of that work alone, reported again when its reason changes", () => {
  const [transfers, taker] = [troubles.work(), troubles.work()];
  for (let attempt = 0; attempt < 3; attempt++) {
    transfers.failed(refusal("cannot transfer", "WRONGTYPE no list"));
    taker.failed(refusal("cannot take", "WRONGTYPE no list"));
    vi.advanceTimersByTime(100);
  }
  expect(news()).toEqual(["cannot transfer: WRONGTYPE no list", "cannot take: WRONGTYPE no list"]);

  transfers.failed(refusal("cannot transfer", "OOM full"));
  transfers.failed(refusal("cannot transfer", "OOM full"));
  expect(news()).toEqual(["cannot transfer: OOM full"]);
  transfers.succeeded();
  transfers.succeeded();
  expect(news()).toEqual(["300 ms: cannot transfer: OOM full"]);
  taker.succeeded();
  expect(news()).toEqual(["300 ms: cannot take: WRONGTYPE no list"]);
});

test("a refusal of a work that has stopped stays open; it is over when the work has ended", () => {
  const [watch, transfers] = [troubles.work(), troubles.work()];
  const refuse = () => watch.failed(refusal("cannot watch", "NOPERM no permissions"));
  refuse();
  watch.stopped();
  vi.advanceTimersByTime(100);
  refuse();
  expect(news()).toEqual(["cannot watch: NOPERM no permissions"]);
  watch.ended();
  watch.ended();
  expect(news()).toEqual(["100 ms: cannot watch: NOPERM no permissions"]);

  // Resumed after all, and still refused.
  refuse();
  expect(news()).toEqual(["cannot watch: NOPERM no permissions"]);

  // An outage is over when all other work succeeds.
  watch.failed(failure("cannot watch", refused));
  transfers.failed(failure("cannot transfer", refused));
  news();
  watch.ended();
  expect(news()).toEqual(["0 ms: cannot watch: NOPERM no permissions"]);
  transfers.succeeded();
  expect(news()).toEqual([`0 ms: ${UNREACHABLE}`]);
});

test("a shared work is refused once, and over when the last of its owners has ended", () => {
  const join = troubles.sharedWork();
  const [one, other] = [join(), join()];
  refuseTake(one);
  refuseTake(other);
  expect(news()).toEqual(["cannot take: WRONGTYPE no list"]);
  one.ended();
  one.ended();
  refuseTake(other);
  expect(news()).toEqual([]);
  other.ended();
  expect(news()).toEqual(["0 ms: cannot take: WRONGTYPE no list"]);

  const late = join();
  refuseTake(late);
  expect(news()).toEqual(["cannot take: WRONGTYPE no list"]);
  late.succeeded();
  expect(news()).toEqual(["0 ms: cannot take: WRONGTYPE no list"]);
});

test("a work that ends because the client closes has not recovered", () => {
  const transfers = troubles.work();
  transfers.failed(refusal("cannot transfer", "WRONGTYPE no list"));
  troubles.closing();
  transfers.ended();
  expect(news()).toEqual(["cannot transfer: WRONGTYPE no list"]);
});

test("a refusal shows that Redis can be reached", () => {
  const transfers = troubles.work();
  transfers.failed(refusal("cannot transfer", "WRONGTYPE no list"));
  transfers.failed(failure("cannot transfer", refused));
  transfers.failed(refusal("cannot transfer", "WRONGTYPE no list"));
  expect(news()).toEqual([
    "cannot transfer: WRONGTYPE no list",
    UNREACHABLE,
    `0 ms: ${UNREACHABLE}`,
  ]);
});

test.each(["READONLY", "LOADING", "CLUSTERDOWN", "WRONGPASS", "NOAUTH"])(
  "%s concerns the whole client",
  (reply) => {
    const works = [troubles.work(), troubles.work()];
    for (const work of works) work.failed(refusal("cannot transfer", `${reply} so it is`));
    expect(news()).toEqual([`cannot transfer: ${reply} so it is`]);
    for (const work of works) work.succeeded();
    expect(news()).toEqual([`0 ms: cannot transfer: ${reply} so it is`]);
  },
);

test("the cause is named even if Node.js tried several addresses, or a cluster client several nodes", () => {
  const addresses = new AggregateError([refused, new Error("connect ECONNREFUSED ::1:6379")]);
  troubles.work().unreachable(addresses);
  expect(news()).toEqual([`${UNREACHABLE}; connect ECONNREFUSED ::1:6379`]);

  troubles = new Troubles({ report: ({ message }) => events.push(message), onRecovered: () => {} });
  const nodes = Object.assign(new Error("Failed to refresh slots cache."), {
    lastNodeError: refused,
  });
  troubles.work().unreachable(nodes);
  expect(news()).toEqual([
    "cannot reach Redis: Failed to refresh slots cache. connect ECONNREFUSED 127.0.0.1:6379",
  ]);
});

const moved = (doing: string) =>
  failure(doing, ofMovedSlot(Object.assign(new Error("MOVED 1 a:1"), { name: "ReplyError" })));
const MOVED = "another node of the Cluster serves the slot: MOVED 1 a:1";

test("slots of a Cluster that move are no trouble unless that takes long", () => {
  const [take, transfer] = [troubles.work(), troubles.work()];
  const refusals = [
    moved("cannot take"),
    refusal("cannot take", "TRYAGAIN Multiple keys request during rehashing of slot"),
    failure("cannot take", new Error(`${GAVE_UP} TRYAGAIN Multiple keys`)),
    failure("cannot take", new Error(`${GAVE_UP} MOVED 1 a:1`)),
  ];
  for (const one of refusals) {
    take.failed(one);
    transfer.failed(one);
    vi.advanceTimersByTime(4000);
    take.succeeded();
    transfer.succeeded();
  }
  vi.advanceTimersByTime(10_000);
  expect(news()).toEqual([]);

  take.failed(moved("cannot take"));
  vi.advanceTimersByTime(6000);
  expect(news()).toEqual([`cannot take: ${MOVED}`]);
  take.succeeded();
  expect(news()).toEqual([`6000 ms: cannot take: ${MOVED}`]);
});

test("a node of a Cluster that a client takes for a single server is reported at once", () => {
  troubles.work().failed(refusal("cannot take", "MOVED 1 a:1"));
  expect(news()).toEqual(["cannot take: MOVED 1 a:1"]);
});

test("a connection that is lost while slots move is reported as ever", () => {
  const work = troubles.work();
  work.failed(moved("cannot take"));
  vi.advanceTimersByTime(1000);
  work.failed(reset("cannot take"));
  vi.advanceTimersByTime(300);
  expect(news()).toEqual(["cannot take: read ECONNRESET"]);
  work.succeeded();
  expect(news()).toEqual(["1300 ms: cannot take: read ECONNRESET"]);
});

test("a client that closes while slots move reports nothing", () => {
  troubles.work().failed(moved("cannot take"));
  troubles.close();
  vi.advanceTimersByTime(10_000);
  expect(news()).toEqual([]);
});
