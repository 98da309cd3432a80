import { describe, expect, test } from "vitest";
import { dashboard, serveDashboard } from "../../../src/tools/dashboard/index.ts";
import { fromHere, newDashboard } from "../../helpers/dashboard.ts";
import { readBody } from "../../../src/tools/dashboard/http/admission.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

const json = { "content-type": "application/json" };

test("every response has the strict policy and is never cached", async () => {
  const { get, post } = newDashboard();
  const all = [get(""), get("api/session"), get("no/such/page"), post("api/session")];
  for (const { headers } of await Promise.all(all)) {
    expect(headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cache-control")).toMatch(/^no-(store|cache)$/);
    expect(headers.get("access-control-allow-origin")).toBeNull();
  }
  expect((await get("api/session")).headers.get("cache-control")).toBe("no-store");
});

describe("without authorize", () => {
  test.each([
    "localhost",
    "localhost:80",
    "127.0.0.1:3000",
    "127.1.2.3",
    "[::1]:80",
    "a.localhost",
  ])("the name %s is served", async (host) => {
    const { get } = newDashboard();
    expect((await get("api/session", { host })).status).toBe(200);
  });

  test.each([
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "10.0.0.1",
    "0.0.0.0",
    "[::2]",
    "a b",
  ])("the name %s is refused, whatever it resolves to", async (host) => {
    const { get, board } = newDashboard();
    expect(await get("api/session", { host })).toMatchObject({ status: 403 });
    expect((await get("", { host })).status).toBe(403);
    if (host === "a b") return;
    expect((await board(fromHere(new Request(`http://${host}/api/session`)))).status).toBe(403);
  });
});

test("without authorize, requests from unknown clients and through proxies are refused", async () => {
  const { board, get } = newDashboard();
  expect((await board(new Request("http://localhost/api/session"))).status).toBe(403);
  for (const name of ["forwarded", "x-forwarded-for", "x-forwarded-host", "via"]) {
    expect((await get("api/session", { [name]: "1.1 proxy" })).status).toBe(403);
  }
  const asking = newDashboard({ authorize: () => true });
  expect((await asking.get("api/session", { via: "1.1 proxy" })).status).toBe(200);
});

test("authorize decides on every request by its headers", async () => {
  const asked: string[] = [];
  const { get } = newDashboard({
    authorize: async (request) => {
      asked.push(new URL(request.url).pathname);
      return request.headers.get("cookie") === "session=ok";
    },
  });
  expect(await get("api/session")).toMatchObject({
    status: 403,
    body: { error: "not authorized" },
  });
  expect((await get("")).status).toBe(403);
  const cookie = "session=ok";
  expect((await get("api/session", { cookie, host: "queues.example" })).status).toBe(200);
  expect(asked).toEqual(["/api/session", "/", "/api/session"]);
});

test("requests are refused if authorize rejects, or returns anything but true", async () => {
  const warnings: Error[] = [];
  const listener = (warning: Error) => void warnings.push(warning);
  process.on("warning", listener);
  const failing = newDashboard({ authorize: () => Promise.reject(new Error("secret")) });
  for (let i = 0; i < 3; i++) {
    expect(await failing.get("api/session")).toMatchObject({
      status: 403,
      body: { error: "not authorized" },
    });
  }
  await eventually(() => warnings.length > 0);
  process.off("warning", listener);
  expect(warnings).toMatchObject([{ cause: { message: "secret" } }]);
  expect(warnings[0]?.message).not.toContain("secret");
  const truthy = newDashboard({ authorize: (() => "yes") as never });
  expect((await truthy.get("api/session")).status).toBe(403);
});

test("authorize gets no body, and cannot consume it", async () => {
  const texts: string[] = [];
  const { post } = newDashboard({
    authorize: async (request) => {
      texts.push(await request.text());
      return true;
    },
  });
  expect((await post(`api/queues/${uniqueName()}/resume`)).status).toBe(200);
  expect(texts).toEqual([""]);
});

test("a body that does not arrive times out", async () => {
  const body = new ReadableStream();
  const init = { method: "POST", body, duplex: "half" } as RequestInit;
  const reading = readBody(new Request("http://localhost/", init), 20);
  await expect(reading).rejects.toMatchObject({ status: 408 });
});

const changePath = () => `api/queues/${uniqueName()}/resume`;

describe("a change", () => {
  test("is accepted from the dashboard's own page", async () => {
    const { post } = newDashboard();
    expect(await post(changePath())).toMatchObject({ status: 200, body: { done: true } });
    const own = { "sec-fetch-site": "same-origin", origin: "http://behind.a.proxy" };
    expect((await post(changePath(), {}, own)).status).toBe(200);
  });

  test("is refused by default", async () => {
    const { post } = newDashboard({ readOnly: true });
    expect(await post(changePath())).toMatchObject({
      status: 403,
      body: { error: expect.stringContaining("read-only") },
    });
  });

  test.each([
    ["from another site", { "sec-fetch-site": "cross-site" }, 403],
    ["from another subdomain", { "sec-fetch-site": "same-site" }, 403],
    ["from no page", { "sec-fetch-site": "none" }, 403],
    ["from another origin", { origin: "http://evil.example" }, 403],
    ["from another port", { origin: "http://localhost:9999" }, 403],
    ["from an opaque origin", { origin: "null" }, 403],
    ["without the header", { "x-delayline": "" }, 403],
    ["as a form", { "content-type": "application/x-www-form-urlencoded" }, 415],
    ["as text", { "content-type": "text/plain" }, 415],
  ])("is refused %s", async (_, headers, status) => {
    const { post } = newDashboard();
    expect((await post(changePath(), {}, headers)).status).toBe(status);
  });

  test("is refused without an origin, and by GET", async () => {
    const { board, get } = newDashboard();
    const headers = { ...json, "x-delayline": "change" };
    const request = new Request(`http://localhost/${changePath()}`, {
      method: "POST",
      headers,
      body: "{}",
    });
    expect((await board(fromHere(request))).status).toBe(403);
    const { status, headers: said } = await get(changePath());
    expect(status).toBe(405);
    expect(said.get("allow")).toBe("POST");
  });

  test.each([
    ["not JSON", "{", 400],
    ["an array", "[]", 400],
    ["null", "null", 400],
    ["too large", JSON.stringify({ id: "x".repeat(20_000) }), 413],
  ])("is refused if its body is %s", async (_, body, status) => {
    const { post } = newDashboard();
    expect((await post(changePath(), body)).status).toBe(status);
  });
});

test.each([
  ["no/such/call", 404],
  ["constructor", 404],
  ["queues/:q/pause/more", 404],
  ["queues/%E0%A4%A/history", 404],
  ["queues/a%7Bb", 400],
  ["queues/", 404],
  ["events?queue=%7B", 400],
  ["queues/q/forecast?span=year", 400],
  ["queues/q/forecast?span=constructor", 400],
  ["queues/q/forecast?from=1e9", 400],
  ["queues/q/messages?limit=101", 400],
  ["queues/q/messages?limit=x", 400],
  ["queues/q/messages", 400],
  ["queues/q/messages?state=gone", 400],
  ["search?q=", 400],
  ["queues/q/messages?state=dead&after=x.0", 410],
  ["queues/q/message", 400],
  ["queues/q/message?id=42", 400],
  ["queues/q/messages?state=dead&payload=1", 403],
])("GET api/%s is refused with %i and a text", async (path, status) => {
  const said = await newDashboard().get(`api/${path}`);
  expect(said).toMatchObject({ status, body: { error: expect.any(String) } });
});

test("another site may link to the page, but not call the API", async () => {
  const { get } = newDashboard();
  for (const site of ["cross-site", "same-site"]) {
    const headers = { "sec-fetch-site": site };
    expect((await get("api/session", headers)).status).toBe(403);
    expect((await get("", headers)).status).toBe(200);
  }
  expect((await get("api/session", { "sec-fetch-site": "none" })).status).toBe(200);
});

test("values and URLs that are too long are refused", async () => {
  const { get } = newDashboard();
  const statusOf = async (path: string) => (await get(`api/queues/${path}`)).status;
  expect(await statusOf(`q/messages?prefix=${"x".repeat(1001)}`)).toBe(400);
  expect(await statusOf(`q/message?key=${"k".repeat(201)}`)).toBe(400);
  expect(await statusOf("x".repeat(9000))).toBe(414);
});

test.each([
  ["message/cancel", { id: "no id" }],
  ["message/cancel", { id: "all" }],
  ["message/reschedule", { id: `1-${"0".repeat(32)}` }],
  ["message/reschedule", { id: `1-${"0".repeat(32)}`, delay: -1 }],
  ["message/reschedule", { id: `1-${"0".repeat(32)}`, delay: "1" }],
  ["message/promote", {}],
  ["message/revoke", { id: "k" }],
  ["message/revoke", { id: `1-${"0".repeat(32)}`, reason: 1 }],
  ["messages/change?state=dead", { verb: "redrive", isAll: true, delay: 1e300 }],
  ["messages/change?state=dead", {}],
  ["messages/change?state=dead", { verb: "redrive" }],
  ["messages/change?state=dead", { verb: "cancel", isAll: true }],
  ["messages/change?state=dead", { verb: "remove", places: [1] }],
  ["messages/change", { verb: "remove", isAll: true }],
])("POST %s with %j is refused", async (path, body) => {
  const said = await newDashboard().post(`api/queues/${uniqueName()}/${path}`, body);
  expect(said).toMatchObject({ status: 400, body: { error: expect.any(String) } });
});

test("errors contain no password and no stack", async () => {
  const { url } = await startOwnServer({ args: ["--requirepass", "hunter2"] });
  const admin = newRedis(url.replace("redis://", "redis://:hunter2@"));
  await admin.acl("SETUSER", "looker", "on", ">sesame", "+ping", "+info", "+client");
  const { get } = newDashboard({ redis: url.replace("redis://", "redis://looker:sesame@") });
  const paths = ["api/queues", "api/queues/q", "api/queues/q/messages?state=delayed"];
  for (const { status, body } of await Promise.all(paths.map((path) => get(path)))) {
    expect(status).toBe(503);
    expect(body.error).toMatch(/cannot .*NOPERM/);
    expect(JSON.stringify(body)).not.toMatch(/sesame|at .*\.ts/);
  }
});

test("the page is served with an ETag, and revalidated", async () => {
  const { get, board } = newDashboard();
  const page = await get("");
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(page.body).toContain("<!doctype html>");
  const tag = page.headers.get("etag") ?? "";
  const again = await get("", { "if-none-match": `"other", W/${tag}` });
  expect(again).toMatchObject({ status: 304, body: "" });
  const head = await board(fromHere(new Request("http://localhost/", { method: "HEAD" })));
  expect([head.status, await head.text()]).toEqual([200, ""]);
  expect(
    (await board(fromHere(new Request("http://localhost/", { method: "DELETE" })))).status,
  ).toBe(405);
  for (const path of ["page", "page/..%2f..%2fdashboard.ts", "__proto__", "toString"]) {
    expect((await get(path)).status).toBe(404);
  }
});

test("the page is served under basePath, with a slash at the end", async () => {
  const { get } = newDashboard({ basePath: "/admin/queues/" });
  expect((await get("admin/queues/api/session")).status).toBe(200);
  expect((await get("admin/queues/")).status).toBe(200);
  const { status, headers } = await get("admin/queues");
  expect([status, headers.get("location")]).toEqual([308, "queues/"]);
});

test.each([
  [{ host: "0.0.0.0" }, /authorize must be given/],
  [{ host: "::" }, /authorize must be given/],
  [{ host: "192.168.1.2" }, /authorize must be given/],
  [{ port: 70_000 }, /port must be a whole number/],
  [{ host: "" }, /host must be/],
  [{ readonly: false }, /dashboard option must be one of/],
  [{ payloads: "yes" }, /payloads must be a boolean/],
  [{ authorize: true }, /authorize must be a function/],
  [{ basePath: "queues" }, /basePath must be/],
])("serveDashboard(%j) refuses to start", async (options, message) => {
  await expect(serveDashboard(options as never)).rejects.toThrow(message);
});

test("made-up names get no history, and cannot be paused", async () => {
  const { get, post, board } = newDashboard();
  const name = uniqueName();
  expect((await get(`api/queues/${name}`)).status).toBe(200);
  expect((await get(`api/queues/${name}/history`)).body.points).toEqual([]);
  expect((await post(`api/queues/${name}/pause`)).status).toBe(404);
  await newLine({ transfer: false }).getDelayedQueue(name).offer("x", 3_600_000);
  expect((await post(`api/queues/${name}/pause`)).status).toBe(200);
  await board.close();
});

test("a closed dashboard replies 503, and may be closed twice", async () => {
  const board = dashboard({ redis: redisUrl() });
  const ask = () => board(fromHere(new Request("http://localhost/api/queues")));
  expect((await ask()).status).toBe(200);
  await Promise.all([board.close(), board.close()]);
  expect((await ask()).status).toBe(503);
});
