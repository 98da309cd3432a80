import type { DelayedMessages } from "../../delayed/delayed-messages.ts";
import type { Duty } from "../../delayed/transfer/sweep-rhythm.ts";
import type { Counters } from "../../observe/counters.ts";
import type { Numbers } from "../../queue/numbers.ts";
import type { PauseWatch } from "../../queue/pause-watch.ts";
import type { Quarantine } from "../../queue/quarantine.ts";
import type { Queue } from "../../queue/queue.ts";
import type { ReadyList } from "../../ready/ready-list.ts";
import type { Group, GroupSettings, OnlyConsumer } from "../../reliable/group/group.ts";
import type { ReliableMessages } from "../../reliable/reliable-messages.ts";

/** One partition that this client has open: an ordinary queue. */
export interface Part {
  readonly queue: Queue;
  readonly pauses: PauseWatch;
  readonly quarantine: Quarantine;
  readonly numbers: Numbers;
  readonly delayed: DelayedMessages;
  readonly ready: ReadyList;
  /** Starts to transfer its due messages; {@link setDuty} decides how eagerly. */
  startTransfer(): void;
  /** Sets whether this client transfers messages as soon as they are due, alone or with others, or only sweeps. */
  setDuty(duty: Duty): void;
  /** Holds back the transfer: this client transfers nothing while `isHeld`. */
  setHeld(isHeld: boolean): void;
  openGroup(settings: GroupSettings): {
    readonly group: Group;
    readonly messages: ReliableMessages;
  };
  /** Opens a separate consumer for one lease on the partition. The caller closes it. */
  openExclusiveGroup(settings: GroupSettings, only: OnlyConsumer): Group;
  /** Stops taking and transferring; resolves once only users' code still holds messages. */
  stopTaking(): Promise<void>;
  /** Gives back the messages that consumers hold, and leaves their groups. */
  leaveGroups(): Promise<void>;
  /** Refuses further calls; resolves when the offers made so far are settled. */
  close(): Promise<void>;
}

/** The state that a partition shares with the rest of its queue. */
export interface PartLink {
  /** The counters of the whole queue. */
  readonly counters: Counters;
  /** The latest fact that this client knows. */
  readonly knownFact: () => string | undefined;
  /** Called with the newer fact when Redis refuses a script because the caller's fact is old. */
  readonly learn: (fact: string) => void;
}

/** Opens partitions, each of which is a queue with a name of its own. */
export interface PartsHost {
  /** How many servers there are: partition p is on server p mod n. */
  readonly serverCount: number;
  /** Opens a queue as a partition, on the server with this index. */
  open(name: string, server: number, link: PartLink): Part;
}
