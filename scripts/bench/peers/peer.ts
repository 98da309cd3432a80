import type { Offered, Taken } from "../deliveries.ts";
import type { OfferPlan } from "../offer-plan.ts";

/** A library that delays messages, with its documented settings for speed. */
export interface Peer {
  /** Its display name. */
  readonly title: string;
  /** Its settings, in a few words. */
  readonly settings: string;
  /** The ZSET of the delayed messages in queue {@link QUEUE}. */
  readonly delayedKey: string;
  /** A client that offers, and moves nothing. */
  openProducer(url: string): Promise<PeerProducer>;
  /**
   * A client that moves and takes due messages.
   *
   * @param concurrency how many messages it may handle at once.
   */
  openWorker(url: string, concurrency: number, onMessage: OnMessage): Promise<PeerWorker>;
  /** Makes messages ready, and resolves when they are. */
  fill?(url: string, payloads: readonly string[]): Promise<void>;
  /** The contests that it takes part in. Defaults to all. */
  readonly contests?: readonly string[];
  /** For a library of another language: its own process, which measures itself. */
  readonly foreign?: ForeignPeer;
}

/** A library's name and settings. */
export type PeerInfo = Pick<Peer, "title" | "settings">;

/** A library that runs elsewhere, and does the work of the producer and worker programs there. */
export interface ForeignPeer {
  openProducer(url: string): Promise<ForeignProducer>;
  openWorker(url: string, concurrency: number): Promise<ForeignWorker>;
}

export interface ForeignProducer {
  offerSteadily(plan: OfferPlan, perSecond: number): Promise<Offered>;
  offerBusily(plan: OfferPlan, inFlight: number): Promise<Offered>;
  offerInBulk(plan: OfferPlan, perCall: number, inFlight?: number): Promise<Offered>;
  offerForIds(plan: OfferPlan, perCall: number): Promise<boolean>;
  cancelBusily(numbers: readonly number[], inFlight: number, by?: CancelBy): Promise<number>;
  close(): Promise<void>;
}

export interface ForeignWorker {
  count(): Promise<number>;
  taken(): Promise<Taken>;
  reset(): Promise<void>;
  close(): Promise<void>;
}

export interface PeerProducer {
  /** Offers one message. Returns its deadline in epoch milliseconds. */
  offer(message: PeerMessage): Promise<number>;
  /** Offers many at once, in the library's fastest way. Returns their deadlines. */
  offerMany(messages: readonly PeerMessage[]): Promise<number[]>;
  /** The same for messages without keys. Returns the ids by which they can be cancelled, if the library makes any. */
  offerForIds?(messages: readonly PeerMessage[]): Promise<string[]>;
  /** Removes the message that was offered with this key, or has this id. */
  cancel(keyOrId: string): Promise<unknown>;
  close(): Promise<unknown>;
}

export interface PeerWorker {
  close(): Promise<unknown>;
}

export type OnMessage = (payload: string) => void;

/** The message to offer. */
export interface PeerMessage {
  readonly payload: string;
  readonly due: Due;
  /** The key to cancel it by. */
  readonly key?: string;
}

/** In `delay` milliseconds, or at `deadline` (epoch ms). All are whole numbers. */
export type Due = { readonly delay: number } | { readonly deadline: number };

/** What a message is cancelled by: the key that it was offered with, or the id that the library made. */
export type CancelBy = "key" | "id";

/** The queue's name. */
export const QUEUE = "orders";

/** The deadline for libraries that go by the local clock. */
export function deadlineOf(due: Due): number {
  return "deadline" in due ? due.deadline : Date.now() + due.delay;
}
