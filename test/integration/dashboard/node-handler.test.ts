import { createServer, request, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { dashboard, nodeHandler, serveDashboard } from "../../../src/tools/dashboard/index.ts";
import { eventsOf } from "../../helpers/dashboard.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { OwnServer } from "../../helpers/own-server.ts";
import { uniqueName } from "../../helpers/redis.ts";

// A server of its own: the queues of other tests would make rounds long.
let redis: OwnServer;
beforeAll(async () => {
  redis = await OwnServer.start();
});
afterAll(() => redis.stop());

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function newBoard() {
  const board = dashboard({ redis: redis.url, readOnly: false });
  onTestFinished(() => board.close());
  return board;
}

function change(url: string): Promise<Response> {
  const headers = { "content-type": "application/json", "x-delayline": "change" };
  const origin = new URL(url).origin;
  return fetch(url, { method: "POST", headers: { ...headers, origin }, body: "{}" });
}

test("serveDashboard serves the page, calls, changes and events, and closes with a page open", async () => {
  const served = await serveDashboard({ redis: redis.url, readOnly: false });
  onTestFinished(() => served.close());
  expect(served.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
  const page = await fetch(served.url);
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(await page.text()).toContain("<!doctype html>");
  expect((await fetch(served.url, { method: "HEAD" })).headers.get("etag")).toMatch(/^".+"$/);
  const name = uniqueName();
  await newLine({ redis: redis.url, transfer: false }).getDelayedQueue(name).offer("x", 3_600_000);
  expect(await (await change(`${served.url}api/queues/${name}/pause`)).json()).toEqual({
    done: true,
  });
  expect(await (await change(`${served.url}api/queues/${name}/resume`)).json()).toEqual({
    done: true,
  });
  const events = eventsOf(await fetch(`${served.url}api/events`));
  expect((await events.next()).value).toMatchObject({ event: "queues" });
  const closed = Promise.all([served.close(), served.close()]);
  await expect(
    (async () => {
      for await (const _ of events);
      throw new Error("ended");
    })(),
  ).rejects.toThrow();
  await closed;
  await expect(fetch(served.url)).rejects.toThrow();
});

test("serveDashboard rejects if the port is taken", async () => {
  const served = await serveDashboard({ redis: redis.url });
  onTestFinished(() => served.close());
  const port = Number(new URL(served.url).port);
  await expect(serveDashboard({ redis: redis.url, port })).rejects.toThrow("EADDRINUSE");
});

test("mounted in Express: serves the stripped path, and redirects to the path with a slash", async () => {
  const node = nodeHandler(newBoard());
  const url = await listen((incoming, response) => {
    const path = incoming.url ?? "";
    const rest = path.slice("/admin/queues".length);
    const isBare = !rest.startsWith("/");
    Object.assign(incoming, {
      originalUrl: path,
      baseUrl: "/admin/queues",
      url: isBare ? `/${rest}` : rest,
    });
    node(incoming, response);
  });
  expect((await fetch(`${url}/admin/queues/api/session`)).status).toBe(200);
  const bare = await fetch(`${url}/admin/queues?x=1`, { redirect: "manual" });
  expect([bare.status, bare.headers.get("location")]).toEqual([308, "queues/"]);
  const page = await fetch(`${url}/admin/queues`);
  expect([page.url, page.status]).toEqual([`${url}/admin/queues/`, 200]);
});

test("accepts a body that the framework has already parsed", async () => {
  const node = nodeHandler(newBoard());
  const url = await listen((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      Object.assign(incoming, { body: JSON.parse(Buffer.concat(chunks).toString()) });
      setImmediate(() => node(incoming, response));
    });
  });
  const name = uniqueName();
  expect((await change(`${url}/api/queues/${name}/resume`)).status).toBe(200);
});

test("a client that disconnects ends its stream", async () => {
  let answered: Request | undefined;
  const board = newBoard();
  const node = nodeHandler((asked) => {
    answered = asked;
    return board(asked);
  });
  const url = await listen(node);
  const leaving = new AbortController();
  const events = eventsOf(await fetch(`${url}/api/events`, { signal: leaving.signal }));
  await events.next();
  leaving.abort();
  await eventually(() => answered?.signal.aborted === true);
});

test("without authorize only this machine is served, whatever host name the request has", async () => {
  const node = nodeHandler(newBoard());
  const url = await listen((incoming, response) => {
    Object.defineProperty(incoming.socket, "remoteAddress", { value: "10.1.2.3" });
    node(incoming, response);
  });
  const response = await fetch(`${url}/api/session`);
  expect(response.status).toBe(403);
  expect(await response.json()).toEqual({ error: expect.stringContaining("only this machine") });
});

test.each(["//evil.example/x", "/%", "http://evil.example/", "*"])(
  "refuses the malformed target %s",
  async (path) => {
    const url = await listen(nodeHandler(newBoard()));
    const { port } = new URL(url);
    const status = await new Promise((resolve, reject) => {
      const asked = request({ port, host: "127.0.0.1", path }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      asked.on("error", reject).end();
    });
    expect(status).toBeGreaterThanOrEqual(400);
  },
);
