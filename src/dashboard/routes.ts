import { checkName, type Call } from "./calls/call.ts";
import { cancel, findMessages, locateMessage, promote, reschedule } from "./calls/message-calls.ts";
import { redriveDead, removeDead, showDead } from "./calls/dead-calls.ts";
import { VERSION } from "./embedded.ts";
import {
  forecast,
  history,
  pause,
  resume,
  showConsumers,
  showQueue,
  showQueues,
} from "./calls/queue-calls.ts";
import { requeueQuarantine, removeQuarantine, showQuarantine } from "./calls/quarantine-calls.ts";
import { replyJson } from "./http/reply.ts";

/** What is replied to a call: a response, or what becomes one as JSON. */
type Answer = (call: Call) => unknown;

export interface Route {
  readonly GET?: Answer;
  readonly POST?: Answer;
}

/** The API. `:q` is the name of a queue. */
const ROUTES: Readonly<Record<string, Route>> = {
  session: {
    GET: ({ running: { settings } }) => ({
      readOnly: settings.readOnly,
      payloads: settings.payloads,
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
  queues: { GET: showQueues },
  "queues/:q": { GET: showQueue },
  "queues/:q/history": { GET: history },
  "queues/:q/forecast": { GET: forecast },
  "queues/:q/consumers": { GET: showConsumers },
  "queues/:q/pause": { POST: pause },
  "queues/:q/resume": { POST: resume },
  "queues/:q/messages": { GET: findMessages },
  "queues/:q/message": { GET: locateMessage },
  "queues/:q/message/cancel": { POST: cancel },
  "queues/:q/message/reschedule": { POST: reschedule },
  "queues/:q/message/promote": { POST: promote },
  "queues/:q/dead": { GET: showDead },
  "queues/:q/dead/redrive": { POST: redriveDead },
  "queues/:q/dead/remove": { POST: removeDead },
  "queues/:q/quarantine": { GET: showQuarantine },
  "queues/:q/quarantine/requeue": { POST: requeueQuarantine },
  "queues/:q/quarantine/remove": { POST: removeQuarantine },
};

/** The route of a path behind `api/`, and the queue that it names. */
export function findRoute(
  path: string,
): { readonly route: Route; readonly queue: string | undefined } | undefined {
  const [first = "", encoded, ...others] = path.split("/");
  const isOfQueue = first === "queues" && encoded !== undefined && encoded !== "";
  const pattern = isOfQueue ? ["queues", ":q", ...others].join("/") : path;
  const route = Object.hasOwn(ROUTES, pattern) ? ROUTES[pattern] : undefined;
  if (route === undefined || pattern.includes(":q") !== isOfQueue) return undefined;
  try {
    return { route, queue: isOfQueue ? unescaped(decodeURIComponent(encoded)) : undefined };
  } catch {
    return undefined;
  }
}

/** The queues "." and ".." have a tilde before them in a path: browsers take them out of it, however they are encoded. */
function unescaped(name: string): string {
  return /^~+\.{1,2}$/.test(name) ? name.slice(1) : name;
}

/** Answers a call. */
export async function answer(answering: Answer, call: Call): Promise<Response> {
  const value = await answering(call);
  return value instanceof Response ? value : replyJson(value);
}
