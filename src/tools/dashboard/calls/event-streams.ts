import { asJson, HttpError, reply } from "../http/reply.ts";
import type { QueueView } from "../../view/samples/queue-view.ts";
import type { Round, Sampler } from "../../view/samples/sampler.ts";
import { networkTime } from "../../../inside.ts";

/** The most streams open at once. */
const MAX_OPEN = 100;

/** How long a stream is silent before it sends a beat (ms). The page takes 10 s of silence for a lost connection. */
const BEAT_AFTER = 4_000;

/** How long a stream lives (ms). The page then opens another one, which `authorize` has to allow. */
const LIFETIME = 600_000;

/** How many events wait for a slow browser. While they wait, newer rounds are dropped. */
const MAX_QUEUED = 4;

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
   * Opens a stream of all rounds: first an event `queues` with the numbers of all queues, then events `changes` with those
   * that differ from what this stream has sent, and the names of queues that are gone. If `queue` is given, also events
   * `queue` with its details, when they have changed. Where nothing differs it sends nothing, and now and then a `beat`.
   * Ends when the request aborts or the body is cancelled.
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
      { highWaterMark: MAX_QUEUED },
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
    const send = (text: string): boolean => {
      const isSent = isOpen && (controller.desiredSize ?? 0) > 0;
      if (isSent) controller.enqueue(encoder.encode(text));
      heartbeat.refresh();
      return isSent;
    };
    const heartbeat = networkTime
      .setInterval(() => send(eventOf("beat", { at: this.#sampler.now })), BEAT_AFTER)
      .unref();
    const life = networkTime.setTimeout(() => close(), LIFETIME).unref();
    const close = () => {
      if (!isOpen) return;
      isOpen = false;
      networkTime.clearInterval(heartbeat);
      networkTime.clearTimeout(life);
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
    let sent: Round | undefined;
    let sentQueue = "";
    const leave = this.#sampler.watch(queue, (round) => {
      // What a slow browser has missed is among the next changes.
      const text = eventsOf(round, sent);
      if (text === "" || send(text)) sent = round;
      const sample = queue === undefined ? undefined : round.samples.get(queue);
      if (queue === undefined || sample === undefined) return;
      void this.#view.show(queue, sample).then((shown) => {
        const details = asJson(shown);
        const isNew = details !== sentQueue;
        if (isNew && send(eventOf("queue", { at: round.at, ...shown }))) sentQueue = details;
      });
    });
    if (signal.aborted) close();
    return close;
  }
}

/** The events of a round for a stream whose last one was `since`. Streams that have sent the same share the text. */
function eventsOf(round: Round, since: Round | undefined): string {
  let texts = textsOf.get(round);
  if (texts === undefined) textsOf.set(round, (texts = new Map<Round | undefined, string>()));
  let text = texts.get(since);
  if (text === undefined) {
    const { at, samples, trouble } = round;
    const before = since?.samples;
    // The sampler keeps the row of a queue in which nothing has changed.
    const queues = Array.from(samples.values(), ({ row }) => row).filter(
      (row) => row.isMissing !== true && before?.get(row.name)?.row !== row,
    );
    const gone = Array.from(before?.keys() ?? []).filter((name) => !samples.has(name));
    const isSame =
      since !== undefined && queues.length + gone.length === 0 && trouble === since.trouble;
    const event = since === undefined ? "queues" : "changes";
    text = isSame ? "" : eventOf(event, { at, queues, gone, trouble });
    texts.set(since, text);
  }
  return text;
}

const textsOf = new WeakMap<Round, Map<Round | undefined, string>>();

function eventOf(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${asJson(data)}\n\n`;
}
