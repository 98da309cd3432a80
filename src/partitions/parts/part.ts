import { DelayedMessages } from "../../delayed/delayed-messages.ts";
import type { Duty } from "../../delayed/transfer/sweep-rhythm.ts";
import { TransferTask } from "../../delayed/transfer/transfer-task.ts";
import type { TransferReply } from "../../lua/delayed/transfer.ts";
import type { Elements, Into } from "../../lua/family.ts";
import { PauseWatch } from "../../queue/pause-watch.ts";
import { Queue, type QueueLink } from "../../queue/queue.ts";
import { ORDINARY } from "../ring/fact.ts";
import { Group, type GroupSettings, type OnlyConsumer } from "../../reliable/group/group.ts";
import { Notices } from "../../reliable/group/notices.ts";
import { Revocations } from "../../reliable/revocations.ts";
import { ReliableMessages } from "../../reliable/reliable-messages.ts";
import { Planner, type Scheduling } from "../../schedules/planner.ts";
import { StoredSchedules } from "../../schedules/stored-schedules.ts";
import type { PlainTakes } from "../../ready/plain-takes.ts";
import { ReadyList } from "../../ready/ready-list.ts";
import { ListWatch } from "../../reliable/list-watch.ts";
import type { Server } from "../../redis/server.ts";

/** Everything that a client has running for one group of a reliable queue. */
export interface OpenGroup {
  readonly group: Group;
  readonly messages: ReliableMessages;
}

/**
 * One part of a queue that this client has open: the ordinary queue, or one partition, which is a queue in Redis with a
 * name of its own. All handles share it.
 */
export class Part {
  /** The partition's number; {@link ORDINARY} for the ordinary queue. */
  readonly partition: number;
  readonly queue: Queue;
  readonly pauses: PauseWatch;
  readonly delayed: DelayedMessages;
  readonly ready: ReadyList;
  readonly schedules: StoredSchedules;
  readonly #scheduling: Scheduling;
  /** Revokes messages, if the queue is reliable. */
  readonly revocations: Revocations;
  readonly #notices: Notices;
  readonly #groups = new Map<string, OpenGroup>();
  #transferTask: TransferTask | undefined;
  #planner: Planner | undefined;
  /** Only if the queue is reliable and this client moves its messages. */
  #listWatch: ListWatch | undefined;
  #duty: Duty = "alone";
  #isSuspended = false;
  #isStopped = false;

  /** @throws {TypeError} if the name cannot name a queue. */
  constructor(
    partition: number,
    name: string,
    elements: Elements,
    server: Server,
    link: QueueLink,
    scheduling: Scheduling,
    plainTakes?: PlainTakes,
  ) {
    this.partition = partition;
    this.queue = new Queue(name, { elements, into: "list" }, server, link);
    this.pauses = new PauseWatch(this.queue);
    this.delayed = new DelayedMessages(this.queue);
    this.ready = new ReadyList(this.queue, this.pauses, plainTakes);
    this.schedules = new StoredSchedules(this.queue);
    this.revocations = new Revocations(this.queue);
    this.#notices = new Notices(this.queue);
    this.#scheduling = scheduling;
  }

  /** The partition's number as users see it: undefined for an ordinary queue, -1 while that is a part beside others. */
  get label(): number | undefined {
    const isAlone = this.partition === ORDINARY && this.queue.knownFact() === undefined;
    return isAlone ? undefined : this.partition;
  }

  /** Starts to transfer its due messages; {@link setDuty} decides how eagerly. */
  startTransfer(): void {
    if (this.#transferTask !== undefined) return;
    this.queue.isUsed = true;
    this.pauses.leaveToSweeps();
    this.#planner = new Planner(this.queue, this.schedules, this.#scheduling);
    this.#transferTask = new TransferTask(this.queue, this.pauses, (reply) =>
      this.#onTransferred(reply),
    );
    this.#transferTask.setDuty(this.#duty);
    this.#transferTask.setSuspended(this.#isSuspended);
    if (this.#isReliable) this.#watchList();
  }

  /** Sets whether this client is one of those that move messages as soon as they are due. */
  setDuty(duty: Duty): void {
    this.#duty = duty;
    this.#transferTask?.setDuty(duty);
    this.#switchListWatch();
  }

  /** While it is suspended, this client moves none of its due messages. */
  setSuspended(isSuspended: boolean): void {
    this.#isSuspended = isSuspended;
    this.#transferTask?.setSuspended(isSuspended);
  }

  /**
   * From now on due messages and retries go into the queue's stream. If this client moves messages, it also takes over
   * what others push to the ready LIST.
   */
  openReliable(): void {
    const wasReliable = this.#isReliable;
    this.queue.becomeReliable();
    if (!wasReliable) this.#onReliable();
  }

  /** Opens this client's consumer in a group, or returns the one that is open. */
  openGroup(settings: GroupSettings): OpenGroup {
    this.openReliable();
    const { group: name } = settings;
    const open = this.#groups.get(name);
    if (open !== undefined) return open;
    const group = new Group(this.queue, settings, this.pauses, this.#notices);
    const messages = new ReliableMessages(group, this.queue);
    const opened = { group, messages };
    this.#groups.set(name, opened);
    if (this.#isStopped) void group.stop();
    return opened;
  }

  /** Opens a separate consumer for one lease on the partition. The caller closes it. */
  openExclusiveGroup(settings: GroupSettings, only: OnlyConsumer): Group {
    this.openReliable();
    return new Group(this.queue, settings, this.pauses, this.#notices, only);
  }

  /** Stops taking and moving; resolves once only users' code holds messages. */
  async stopTaking(): Promise<void> {
    this.#isStopped = true;
    this.pauses.close();
    const groups = Array.from(this.#groups.values(), ({ group }) => group.stop());
    const own = [
      this.#transferTask?.leave(),
      this.#planner?.close(),
      this.#listWatch?.close(),
      this.ready.close(),
    ];
    await Promise.all([...own, ...groups]);
  }

  get #isReliable(): boolean {
    return this.queue.layout.into === "stream";
  }

  #onTransferred(reply: TransferReply): void {
    const { wentInto, hasListed, fact, isReliable, isPaused, scheduleKeys } = reply;
    if (scheduleKeys !== undefined) this.#planner?.note(isPaused === true, scheduleKeys);
    if (fact !== undefined) this.queue.learn(fact);
    if (isReliable !== undefined) this.queue.noteStream(isReliable);
    // Another process may have made the queue reliable, or plain again.
    if (wentInto !== undefined) {
      this.queue.noteStream(wentInto === "stream");
      this.#follow(wentInto);
    }
    this.#switchListWatch();
    if (!hasListed) this.#listWatch?.noteEmpty();
    else if (this.pauses.isPaused !== true) this.#listWatch?.lookOnce();
  }

  #follow(into: Into): void {
    if (into === this.queue.layout.into || (into === "list" && this.queue.makesStream)) return;
    this.queue.follow(into);
    if (into === "stream") this.#onReliable();
    else this.#switchListWatch();
  }

  #onReliable(): void {
    if (this.#transferTask === undefined || this.#isStopped) return;
    this.#watchList();
    // The task does not know yet when the retries are due.
    this.#transferTask.lookAgain();
  }

  #watchList(): void {
    this.#listWatch ??= new ListWatch(this.queue, () => this.#follow("list"));
    this.#switchListWatch();
  }

  /** Watches the LIST only while this process moves messages: one process is enough. */
  #switchListWatch(): void {
    const isMoving = this.#transferTask?.isStandingBy === false;
    this.#listWatch?.switch(isMoving && this.#isReliable && this.pauses.isPaused === false);
  }

  /** After {@link stopTaking}: resolves when no handler holds a delivery, or `signal` is aborted. */
  async handlersEnded(signal: AbortSignal): Promise<void> {
    await Promise.all(
      Array.from(this.#groups.values(), ({ group }) => group.handlersEnded(signal)),
    );
  }

  /** Gives back the messages that its consumers hold, and leaves their groups. */
  async leaveGroups(): Promise<void> {
    await Promise.all(Array.from(this.#groups.values(), ({ group }) => group.close()));
  }

  /** Refuses every call from now on; resolves when the offers, and the calls that take messages, are done. */
  async close(): Promise<void> {
    await this.leaveGroups();
    // This sends the offers of this turn, before the queue refuses to send any.
    const done = this.done();
    this.queue.close();
    await Promise.all([done, this.queue.done()]);
    for (const messages of this.#messages) messages.leave();
  }

  /** Resolves when the offers, cancellations and revocations made so far are done. */
  async done(): Promise<void> {
    const all = [this.revocations, ...this.#messages];
    await Promise.all(all.map((messages) => messages.done()));
  }

  get #messages(): DelayedMessages[] {
    return [this.delayed, ...Array.from(this.#groups.values(), ({ messages }) => messages)];
  }
}
