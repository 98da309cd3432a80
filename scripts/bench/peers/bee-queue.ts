import Queue from "bee-queue";
import {
  deadlineOf,
  QUEUE,
  type OnMessage,
  type Peer,
  type PeerMessage,
  type PeerProducer,
  type PeerWorker,
} from "./peer.ts";
import { versionOf } from "./version.ts";

export const beeQueue: Peer = {
  title: `bee-queue ${versionOf("bee-queue")}`,
  settings:
    "getEvents, sendEvents, storeJobs: false; removeOnSuccess, removeOnFailure; " +
    "workers with activateDelayedJobs, delayedDebounce 1 ms; bulk by saveAll",
  delayedKey: `bq:${QUEUE}:delayed`,

  async openProducer(url) {
    return new Producer(await connect(url, { isWorker: false }));
  },

  openWorker,

  async fill(url, payloads) {
    const producer = await connect(url, { isWorker: false });
    const errors = await producer.saveAll(payloads.map((payload) => producer.createJob(payload)));
    for (const error of errors.values()) throw error;
    await producer.close();
  },
};

async function openWorker(
  url: string,
  concurrency: number,
  onMessage: OnMessage,
): Promise<PeerWorker> {
  // The debounce is a second by default: a message that is due within a second of another one waits for it.
  const queue = await connect(url, { activateDelayedJobs: true, delayedDebounce: 1 });
  queue.process(concurrency, async ({ data }) => onMessage(data));
  return queue;
}

async function connect(url: string, more: Queue.QueueSettings): Promise<Queue<string>> {
  const queue = new Queue<string>(QUEUE, {
    redis: url,
    getEvents: false,
    sendEvents: false,
    storeJobs: false,
    removeOnSuccess: true,
    removeOnFailure: true,
    ...more,
  });
  await queue.ready();
  return queue;
}

class Producer implements PeerProducer {
  readonly #queue: Queue<string>;

  constructor(queue: Queue<string>) {
    this.#queue = queue;
  }

  async offer(message: PeerMessage): Promise<number> {
    const { job, deadline } = this.#toJob(message);
    await job.save();
    return deadline;
  }

  async offerMany(messages: readonly PeerMessage[]): Promise<number[]> {
    return (await this.#saveAll(messages)).map(({ deadline }) => deadline);
  }

  async offerForIds(messages: readonly PeerMessage[]): Promise<string[]> {
    return (await this.#saveAll(messages)).map(({ job }) => job.id);
  }

  async cancel(keyOrId: string): Promise<unknown> {
    return await this.#queue.removeJob(keyOrId);
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  async #saveAll(messages: readonly PeerMessage[]) {
    const jobs = messages.map((message) => this.#toJob(message));
    const errors = await this.#queue.saveAll(jobs.map(({ job }) => job));
    for (const error of errors.values()) throw error;
    return jobs;
  }

  #toJob({ payload, due, key }: PeerMessage) {
    const deadline = deadlineOf(due);
    const job = this.#queue.createJob(payload).delayUntil(deadline);
    return { job: key === undefined ? job : job.setId(key), deadline };
  }
}
