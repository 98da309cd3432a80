import { Queue, Worker } from "bullmq";
import {
  QUEUE,
  type OnMessage,
  type Peer,
  type PeerMessage,
  type PeerProducer,
  type PeerWorker,
} from "./peer.ts";
import { versionOf } from "./version.ts";

export const bullmq: Peer = {
  title: `BullMQ ${versionOf("bullmq")}`,
  settings: "removeOnComplete, removeOnFail, events stream of 100 entries; bulk by addBulk",
  delayedKey: `bull:${QUEUE}:delayed`,

  async openProducer(url) {
    return new Producer(await openQueue(url));
  },

  openWorker,

  async fill(url, payloads) {
    const producer = await openQueue(url);
    await producer.addBulk(payloads.map((data) => ({ name: "order", data })));
    await producer.close();
  },
};

async function openQueue(url: string): Promise<Queue<string>> {
  const queue = new Queue<string>(QUEUE, {
    connection: { url },
    streams: { events: { maxLen: 100 } },
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  });
  await queue.waitUntilReady();
  return queue;
}

async function openWorker(
  url: string,
  concurrency: number,
  onMessage: OnMessage,
): Promise<PeerWorker> {
  const connection = { url, maxRetriesPerRequest: null };
  const worker = new Worker<string>(QUEUE, async ({ data }) => onMessage(data), {
    connection,
    concurrency,
  });
  await worker.waitUntilReady();
  return worker;
}

class Producer implements PeerProducer {
  readonly #queue: Queue<string>;

  constructor(queue: Queue<string>) {
    this.#queue = queue;
  }

  async offer(message: PeerMessage): Promise<number> {
    const { payload, options, deadline } = toJob(message);
    await this.#queue.add("order", payload, options);
    return deadline;
  }

  async offerMany(messages: readonly PeerMessage[]): Promise<number[]> {
    const jobs = messages.map(toJob);
    await this.#addBulk(jobs);
    return jobs.map(({ deadline }) => deadline);
  }

  async offerForIds(messages: readonly PeerMessage[]): Promise<string[]> {
    return (await this.#addBulk(messages.map(toJob))).map(({ id }) => String(id));
  }

  async cancel(keyOrId: string): Promise<unknown> {
    return await this.#queue.remove(keyOrId);
  }

  #addBulk(jobs: readonly ReturnType<typeof toJob>[]) {
    return this.#queue.addBulk(
      jobs.map(({ payload, options }) => ({ name: "order", data: payload, opts: options })),
    );
  }

  close(): Promise<void> {
    return this.#queue.close();
  }
}

/** The deadline is the job's timestamp plus its delay. */
function toJob({ payload, due, key }: PeerMessage) {
  const timestamp = Date.now();
  const delay = "delay" in due ? due.delay : Math.max(0, due.deadline - timestamp);
  const options = { delay, timestamp, ...(key !== undefined && { jobId: key }) };
  return { payload, options, deadline: timestamp + delay };
}
