import { HttpError } from "../http/http-error.ts";
import type { QueueView } from "../readings/queue-view.ts";
import { asJson, reply } from "../http/reply.ts";
import type { Round, Sampler } from "../readings/sampler.ts";

/** How many streams are open at once. */
const MOST = 100;

/** A sign of life is sent when nothing else was, so that nobody takes the connection for dead (ms). */
const BEAT = 4_000;

/** After this a stream ends, and the browser opens another one: so `authorize` is asked again (ms). */
const LIFE = 600_000;

/** Events that wait for a slow browser. Beyond them rounds are left out. */
const WAITING = 4;

/** The event of a round is the same for all who watch, and written once. */
const written = new WeakMap<Round, string>();

/** Open streams of server-sent events. Each watches the sampler, which reads once for all. */
export class EventStreams {
  readonly #sampler: Sampler;
  readonly #view: QueueView;
  /** With each the request that it answers: the signal of a request that was collected is never aborted. */
  readonly #open = new Map<() => void, Request>();

  constructor(sampler: Sampler, view: QueueView) {
    this.#sampler = sampler;
    this.#view = view;
  }

  /**
   * A stream of what each round finds: of all queues, and of one in detail if it is named. Ends when the request is
   * aborted, or the body is cancelled.
   *
   * @throws {HttpError} 503 if too many are open.
   */
  open(queue: string | undefined, request: Request): Response {
    if (this.#open.size >= MOST) {
      throw new HttpError(503, `more than ${MOST} pages are open: close some`);
    }
    let close: (() => void) | undefined;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          close = this.#start(controller, queue, request);
        },
        cancel: () => close?.(),
      },
      { highWaterMark: WAITING },
    );
    const headers = { "content-type": "text/event-stream; charset=utf-8" };
    // Else nginx gathers what it should pass on.
    return reply(body, 200, { ...headers, "x-accel-buffering": "no" });
  }

  close(): void {
    for (const close of this.#open.keys()) close();
  }

  #start(
    controller: ReadableStreamDefaultController<Uint8Array>,
    queue: string | undefined,
    request: Request,
  ): () => void {
    const { signal } = request;
    const encoder = new TextEncoder();
    let isOpen = true;
    const send = (text: string) => {
      if (isOpen && (controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(text));
      heartbeat.refresh();
    };
    const heartbeat = setInterval(
      () => send(eventOf("beat", { at: this.#sampler.now })),
      BEAT,
    ).unref();
    const life = setTimeout(() => close(), LIFE).unref();
    const close = () => {
      if (!isOpen) return;
      isOpen = false;
      clearInterval(heartbeat);
      clearTimeout(life);
      leave();
      signal.removeEventListener("abort", close);
      this.#open.delete(close);
      try {
        controller.close();
      } catch {
        // It was cancelled.
      }
    };
    this.#open.set(close, request);
    signal.addEventListener("abort", close);
    send("retry: 2000\n\n");
    const leave = this.#sampler.watch(queue, (round) => {
      send(eventsOf(round));
      const sample = queue === undefined ? undefined : round.samples.get(queue);
      if (queue === undefined || sample === undefined) return;
      void this.#view.show(queue, sample).then((shown) => {
        send(eventOf("queue", { at: round.at, ...shown }));
      });
    });
    if (signal.aborted) close();
    return close;
  }
}

/** What a round says to everybody. */
function eventsOf(round: Round): string {
  let text = written.get(round);
  if (text === undefined) {
    const { at, samples, error } = round;
    const queues = Array.from(samples.values(), ({ row }) => row);
    const trouble = error === undefined ? "" : eventOf("trouble", { at, error });
    text = trouble + eventOf("queues", { at, queues });
    written.set(round, text);
  }
  return text;
}

function eventOf(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${asJson(data)}\n\n`;
}
