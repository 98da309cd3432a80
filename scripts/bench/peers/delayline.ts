import { Delayline, type DelayedQueue } from "delayline";
import { QUEUE, type Peer, type PeerMessage, type PeerProducer } from "./peer.ts";

export const delayline: Peer = {
  title: "Delayline",
  settings: "defaults; producers with transfer: false; bulk by offerMany",
  delayedKey: `redisson_delay_queue_timeout:{${QUEUE}}`,

  async openProducer(url) {
    const line = new Delayline({ redis: url });
    return new Producer(line, line.getDelayedQueue(QUEUE, { transfer: false }));
  },

  async openWorker(url, concurrency, onMessage) {
    const line = new Delayline({ redis: url });
    line.getBlockingQueue<string>(QUEUE).subscribe(onMessage, { concurrency });
    return line;
  },

  async fill(url, payloads) {
    await using line = new Delayline({ redis: url });
    await line.getBlockingQueue<string>(QUEUE, { transfer: false }).putMany(payloads);
  },
};

type Offering = Pick<DelayedQueue<string>, "offer" | "offerAt" | "offerMany" | "cancel">;

/** Offers to a plain queue or a reliable one. */
export class Producer implements PeerProducer {
  readonly #line: Delayline;
  readonly #queue: Offering;

  constructor(line: Delayline, queue: Offering) {
    this.#line = line;
    this.#queue = queue;
  }

  async offer({ payload, due, key }: PeerMessage): Promise<number> {
    const options = key === undefined ? {} : { key };
    const { deadline } =
      "delay" in due
        ? await this.#queue.offer(payload, due.delay, options)
        : await this.#queue.offerAt(payload, new Date(due.deadline), options);
    return deadline;
  }

  async offerMany(messages: readonly PeerMessage[]): Promise<number[]> {
    const withDelay = delayedOf(messages);
    // offerMany takes no dates; offers of one turn of the event loop share a script as well.
    return withDelay.length < messages.length
      ? await Promise.all(messages.map((message) => this.offer(message)))
      : (await this.#queue.offerMany(withDelay)).map(({ deadline }) => deadline);
  }

  async offerForIds(messages: readonly PeerMessage[]): Promise<string[]> {
    return (await this.#queue.offerMany(delayedOf(messages))).map(({ id }) => id);
  }

  cancel(keyOrId: string): Promise<boolean> {
    return this.#queue.cancel(keyOrId);
  }

  async close(): Promise<void> {
    await this.#line.close();
  }
}

/** The messages that are offered with a delay rather than a deadline. */
function delayedOf(messages: readonly PeerMessage[]) {
  return messages.flatMap(({ payload, due, key }) =>
    "delay" in due ? [{ payload, delay: due.delay, ...(key !== undefined && { key }) }] : [],
  );
}
