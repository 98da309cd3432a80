import { MARK, type Taken } from "../deliveries.ts";
import { numberOf } from "../payload.ts";
import { loadPeer, type PeerName } from "../peers/load.ts";
import type { ForeignWorker, PeerWorker } from "../peers/peer.ts";
import { ReferenceClock } from "../reference-clock.ts";
import { serve } from "./serve.ts";

/** Notes which messages arrived, and when. */
class Notes {
  readonly #clock: ReferenceClock;
  #numbers: number[] = [];
  #takenAt: number[] = [];
  #processorTimes = [processorTime()];

  constructor(clock: ReferenceClock) {
    this.#clock = clock;
  }

  /** How many messages have been taken since the last {@link reset}. */
  get count(): number {
    return this.#numbers.length;
  }

  get taken(): Taken {
    return {
      numbers: Float64Array.from(this.#numbers),
      takenAt: Float64Array.from(this.#takenAt),
      uncertainty: this.#clock.uncertainty,
      processorTimes: this.#processorTimes,
    };
  }

  note(payload: string): void {
    this.#takenAt.push(this.#clock.now());
    this.#numbers.push(numberOf(payload));
    if (this.#numbers.length % MARK === 0) this.#processorTimes.push(processorTime());
  }

  reset(): void {
    this.#numbers = [];
    this.#takenAt = [];
    this.#processorTimes = [processorTime()];
  }
}

/** The processor time of this process, in microseconds. */
function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** The clients in this process, which share their notes. */
class Worker implements ForeignWorker {
  readonly #clients: readonly PeerWorker[];
  readonly #notes: Notes;

  constructor(clients: readonly PeerWorker[], notes: Notes) {
    this.#clients = clients;
    this.#notes = notes;
  }

  count = async (): Promise<number> => this.#notes.count;
  taken = async (): Promise<Taken> => this.#notes.taken;
  reset = async (): Promise<void> => this.#notes.reset();

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
  }
}

let worker: ForeignWorker;

const methods = {
  /** Opens so many clients, each of which may hold so many messages at once. */
  async open(peerName: PeerName, url: string, count: number, concurrency: number): Promise<void> {
    const peer = await loadPeer(peerName);
    if (peer.foreign !== undefined) {
      worker = await peer.foreign.openWorker(url, concurrency);
      return;
    }
    const notes = new Notes(await ReferenceClock.of(url));
    const clients = await Promise.all(
      Array.from({ length: count }, () =>
        peer.openWorker(url, concurrency, (payload) => notes.note(payload)),
      ),
    );
    worker = new Worker(clients, notes);
  },
  count: () => worker.count(),
  taken: () => worker.taken(),
  reset: () => worker.reset(),
  close: () => worker.close(),
};

/** The methods of the program. */
export type WorkerMethods = typeof methods;

serve(methods);
