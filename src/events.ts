/**
 * `delayline/events`: the types of what a client emits, and of what is published on diagnostics channels.
 *
 * @module delayline/events
 */
export type { DelaylineEvents } from "./client/delayline-events.ts";
export type { RecoveredEvent } from "./redis/troubles.ts";
export type { ScriptEvent } from "./lua/script.ts";
export type {
  DeliveredMessage,
  DroppedEvent,
  HandleEvent,
  OfferEvent,
  RestoredEvent,
  SettleEvent,
  TakeEvent,
  TransferEvent,
} from "./observe/events.ts";
