import { asJson, HttpError, reply } from "../http/reply.ts";
import type { QueueView } from "../readings/queue-view.ts";
import type { Round, Sampler } from "../readings/sampler.ts";
import { clearInterval, clearTimeout, setInterval, setTimeout } from "../../../time/network.ts";

/** The most streams open at once. */
const MAX_OPEN = 100;

/** How long a stream is silent before it sends a beat (ms). The page takes 10 s of silence for a lost connection. */
const BEAT_AFTER = 4_000;

/** How long a stream lives (ms). The page then opens another one, which `authorize` has to allow. */
const LIFETIME = 600_000;

/** How many events wait for a slow browser. While they wait, newer rounds are dropped. */
const MAX_WAITING = 4;

/** The events of a round. They are the same for all streams, so they are written once. */
const textOfRound = new WeakMap<Round, string>();

/** The open streams of server-sent events. All of them watch one sampler. */
export class EventStreams {
  readonly #sampler: Sampler;
  readonly #view: QueueView;
  /** Each stream's `close`, with its request: a request that is garbage-collected never aborts its signal. */
  readonly #open = new Map<() => void, Request>();

  constructor(sampler: Sampler, view: QueueView) {
    this.#sampler = sampler;
    this.#view = view;
  }

  /**
   * Opens a stream of all rounds: an event `queues` with the numbers of all queues, and if `queue` is given an event
   * `queue` with its details. Ends when the request aborts or the body is cancelled.
   *
   * @throws {HttpError} 503 if too many streams are open.
   */
  open(queue: string | undefined, request: Request): Response {
    if (this.#open.size >= MAX_OPEN) {
      throw new HttpError(503, `${MAX_OPEN} pages are open already: close some`);
    }
    let close: (() => void) | undefined;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          close = this.#start(controller, queue, request);
        },
        cancel: () => close?.(),
      },
      { highWaterMark: MAX_WAITING },
    );
    const headers = { "content-type": "text/event-stream; charset=utf-8" };
    // Without this header nginx buffers the stream.
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
      BEAT_AFTER,
    ).unref();
    const life = setTimeout(() => close(), LIFETIME).unref();
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
        // The body was cancelled.
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

/** The events of a round that every stream sends. */
function eventsOf(round: Round): string {
  let text = textOfRound.get(round);
  if (text === undefined) {
    const { at, samples, error, refusal } = round;
    const queues = Array.from(samples.values(), ({ row }) => row);
    const why = error ?? refusal;
    const trouble = why === undefined ? "" : eventOf("trouble", { at, error: why });
    text = trouble + eventOf("queues", { at, queues });
    textOfRound.set(round, text);
  }
  return text;
}

function eventOf(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${asJson(data)}\n\n`;
}
