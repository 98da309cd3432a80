/**
 * The declarations that the snippets of the pages rely on: a page that says `orders` means a queue.
 *
 * This is a text, so that the rest of the project does not see these names.
 */
export const PRELUDE = /* ts */ `
import type { BlockingQueue, Delayline as Client, DelayedQueue, ReliableQueue } from "delayline";
import type { RedisServer } from "delayline/testing";

declare global {
  /** The message of most snippets. */
  interface Order {
    readonly id: number;
    readonly total: number;
  }

  const line: Client;
  const orders: DelayedQueue<Order>;
  const ready: BlockingQueue<Order>;
  const order: Order;

  /** The message of snippets about reliable queues. */
  interface Notice {
    readonly partner: string;
    readonly payment: string;
  }

  const notices: ReliableQueue<Notice>;

  /** The message of snippets about schedules. */
  interface Report {
    readonly kind?: string;
    readonly day?: string;
  }

  const reports: ReliableQueue<Report>;

  /** A queue of messages that fall due all at once. */
  const coupons: ReliableQueue<Order>;

  function write(report: Report): Promise<void>;

  /** A Redis for tests. */
  const server: RedisServer;

  function tell(notice: Notice, options?: { signal: AbortSignal }): Promise<void>;

  /** What an application does with messages. */
  function cancelUnlessPaid(order: Order, options?: { signal: AbortSignal }): Promise<void>;
}
`;
