import { onTestFinished } from "vitest";
import {
  dashboard,
  type Dashboard,
  type DashboardOptions,
} from "../../src/tools/dashboard/index.ts";
import { setPeer } from "../../src/tools/dashboard/http/node-handler.ts";
import { redisUrl } from "./redis.ts";

/** A reply of the dashboard. */
export interface Said {
  readonly status: number;
  readonly headers: Headers;
  // Each test knows the shape of the body that it reads.
  readonly body: any;
}

/** A dashboard, and the requests of its page. */
export interface TestDashboard {
  readonly board: Dashboard;
  /** Sends a GET request for `path`. */
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Said>;
  /** Sends a change, as the page does. */
  readonly post: (
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Said>;
}

const ORIGIN = "http://localhost:8080";

/**
 * A dashboard of the shared Redis, which allows changes and keeps no history unless told otherwise. It ends with the test.
 */
export function newDashboard(options?: DashboardOptions): TestDashboard {
  const board = dashboard({ redis: redisUrl(), readOnly: false, keepHistory: false, ...options });
  onTestFinished(() => board.close());
  const ask = async (path: string, init: RequestInit): Promise<Said> => {
    const response = await board(fromHere(new Request(`${ORIGIN}/${path}`, init)));
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    const body: unknown = isJson ? JSON.parse(text) : text;
    return { status: response.status, headers: response.headers, body };
  };
  return {
    board,
    get: (path, headers = {}) => ask(path, { headers }),
    post: (path, body = {}, headers = {}) =>
      ask(path, {
        method: "POST",
        body: typeof body === "string" ? body : JSON.stringify(body),
        headers: {
          "content-type": "application/json",
          "x-delayline": "change",
          origin: ORIGIN,
          ...headers,
        },
      }),
  };
}

/** Marks a request as sent from this machine. */
export function fromHere(request: Request): Request {
  setPeer(request, "127.0.0.1");
  return request;
}

/** Reads server-sent events: their names and their data. Skips beats, which arrive when a busy machine is slow. */
export async function* eventsOf(
  response: Response,
): AsyncGenerator<{ readonly event: string; readonly data: any }, void, void> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
      if (event !== undefined && event !== "beat")
        yield { event, data: JSON.parse(data ?? "null") };
    }
  }
}
