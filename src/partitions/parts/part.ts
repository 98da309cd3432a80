import type { DelayedMessages } from "../../delayed/delayed-messages.ts";
import type { Duty } from "../../delayed/transfer/sweep-rhythm.ts";
import type { Counters } from "../../observe/counters.ts";
import type { Numbers } from "../../queue/numbers.ts";
import type { PauseWatch } from "../../queue/pause-watch.ts";
import type { Quarantine } from "../../queue/quarantine.ts";
import type { Queue } from "../../queue/queue.ts";
import type { ReadyList } from "../../ready/ready-list.ts";
import type { OnConnected } from "../../redis/blocking-client.ts";
import type { Connections } from "../../redis/connections.ts";
import type { Subscriber } from "../../redis/subscriber.ts";
import type { Troubles } from "../../redis/troubles.ts";
import type { ServerClock } from "../../time/server-clock.ts";
import type { DelaylineError } from "../../errors.ts";
import type { Group, GroupSettings } from "../../reliable/group/group.ts";
import type { ReliableMessages } from "../../reliable/reliable-messages.ts";

/** The server that a partition is on, or its Cluster. */
export interface Server {
  readonly connections: Connections;
  readonly subscriber: Subscriber;
  readonly clock: ServerClock;
  readonly troubles: Troubles;
  readonly closeTimeout: number;
  readonly report: (error: DelaylineError) => void;
}

/** One partition as the client has it open: an ordinary queue. */
export interface Part {
  readonly queue: Queue;
  readonly server: Server;
  readonly pauses: PauseWatch;
  readonly quarantine: Quarantine;
  readonly numbers: Numbers;
  readonly delayed: DelayedMessages;
  readonly ready: ReadyList;
  /** From now on this client moves its due messages, as far as it is on duty. */
  startTransfer(): void;
  /** Whether this client is one of those that move its due messages as soon as they are due. */
  setDuty(duty: Duty): void;
  /** While it is held this client moves nothing. */
  setHeld(isHeld: boolean): void;
  openGroup(settings: GroupSettings): {
    readonly group: Group;
    readonly messages: ReliableMessages;
  };
  /** A consumer of its own for one lease on the partition; who opens it closes it. */
  openExclusiveGroup(settings: GroupSettings, onConnected: OnConnected): Group;
  /** Stops taking and moving; resolves when nothing is in hand any more, but with users' code. */
  stopTaking(): Promise<void>;
  /** Gives back what consumers have in hand, and leaves their groups. */
  leaveGroups(): Promise<void>;
  /** Refuses every call from now on; resolves when the offers that were made are settled. */
  close(): Promise<void>;
}

/** What a partition has to do with the others. */
export interface Membership {
  /** Those of the whole queue. */
  readonly counters: Counters;
  /** What is known about the partitions by now. */
  readonly knownFact: () => string | undefined;
  /** Is told what Redis knows, when it refuses a script since it knows more. */
  readonly learn: (fact: string) => void;
}

/** Opens partitions, each of which is a queue with a name of its own. */
export interface PartsHost {
  /** How many servers there are: partition p is on server p mod n. */
  readonly serverCount: number;
  /** Opens a queue as one of many. */
  open(name: string, server: number, membership: Membership): Part;
}
