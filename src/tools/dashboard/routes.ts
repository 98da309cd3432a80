import { VERSION } from "../version.ts";
import { checkName, type ApiCall } from "./calls/api-call.ts";
import { changeMessages } from "./calls/change-calls.ts";
import {
  cancel,
  listMessages,
  locateMessage,
  promote,
  reschedule,
  revoke,
  showReasons,
} from "./calls/message-calls.ts";
import { listPayloads } from "./calls/payload-calls.ts";
import {
  forecast,
  history,
  changeLane,
  pause,
  preview,
  resume,
  showConsumers,
  showFlow,
  showLines,
  showLog,
  showQueue,
  showQueues,
} from "./calls/queue-calls.ts";
import { changeSchedule, listSchedules } from "./calls/schedule-calls.ts";
import { searchAll } from "./calls/search-calls.ts";
import {
  examine,
  showBusy,
  showExamination,
  showMonth,
  showMonthCell,
  showRedis,
} from "./calls/view-calls.ts";
import { replyJson } from "./http/reply.ts";
import { whereIs } from "./readings/redis-health.ts";

/** Carries out a call. Returns a response, or a value to reply with as JSON. */
type CallHandler = (call: ApiCall) => unknown;

/** The handlers of a path, by HTTP method. */
export interface Route {
  readonly GET?: CallHandler;
  readonly POST?: CallHandler;
}

/**
 * The API, by the path behind `api/`. `:q` stands for the name of a queue. `docs/guide/dashboard-api.md` documents it.
 */
export const ROUTES: Readonly<Record<string, Route>> = {
  session: {
    GET: ({ running: { settings, inspector } }) => ({
      readOnly: settings.readOnly,
      payloads: settings.payloads,
      where: whereIs(inspector),
      version: VERSION,
    }),
  },
  events: {
    GET: (call) => {
      const queue = call.value("queue");
      if (queue !== undefined) checkName(queue);
      return call.running.streams.open(queue, call.request);
    },
  },
  search: { GET: searchAll },
  month: { GET: showMonth },
  "month/cell": { GET: showMonthCell },
  busy: { GET: showBusy },
  redis: { GET: showRedis },
  doctor: { GET: examine },
  "doctor/latest": { GET: showExamination },
  lines: { GET: showLines },
  queues: { GET: showQueues },
  "queues/:q": { GET: showQueue },
  "queues/:q/history": { GET: history },
  "queues/:q/forecast": { GET: forecast },
  "queues/:q/flow": { GET: showFlow },
  "queues/:q/lanes/change": { POST: changeLane },
  "queues/:q/preview": { GET: preview },
  "queues/:q/consumers": { GET: showConsumers },
  "queues/:q/log": { GET: showLog },
  "queues/:q/schedules": { GET: listSchedules },
  "queues/:q/schedules/change": { POST: changeSchedule },
  "queues/:q/pause": { POST: pause },
  "queues/:q/resume": { POST: resume },
  "queues/:q/messages": { GET: listMessages },
  "queues/:q/messages/change": { POST: changeMessages },
  "queues/:q/message": { GET: locateMessage },
  "queues/:q/message/cancel": { POST: cancel },
  "queues/:q/message/reschedule": { POST: reschedule },
  "queues/:q/message/promote": { POST: promote },
  "queues/:q/message/revoke": { POST: revoke },
  "queues/:q/dead/reasons": { GET: showReasons },
  "queues/:q/payloads": { GET: listPayloads },
};

/** Finds the route of a path behind `api/`, and the queue named in the path. Undefined if there is no such route. */
export function findRoute(
  path: string,
): { readonly route: Route; readonly queue: string | undefined } | undefined {
  const [first = "", encoded, ...others] = path.split("/");
  const namesQueue = first === "queues" && encoded !== undefined && encoded !== "";
  const pattern = namesQueue ? ["queues", ":q", ...others].join("/") : path;
  const route = Object.hasOwn(ROUTES, pattern) ? ROUTES[pattern] : undefined;
  if (route === undefined || pattern.includes(":q") !== namesQueue) return undefined;
  try {
    return { route, queue: namesQueue ? unescaped(decodeURIComponent(encoded)) : undefined };
  } catch {
    return undefined;
  }
}

/** Undoes `escaped` of page/data/api.js: browsers drop the path segments "." and "..", however they are encoded. */
function unescaped(name: string): string {
  return /^~+\.{1,2}$/.test(name) ? name.slice(1) : name;
}

/** Runs a handler, and replies with what it returns. */
export async function answer(handler: CallHandler, call: ApiCall): Promise<Response> {
  const value = await handler(call);
  return value instanceof Response ? value : replyJson(value);
}
