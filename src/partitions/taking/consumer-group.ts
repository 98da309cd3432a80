import type { TakingGroup } from "../../reliable/consuming/consuming.ts";
import type { Group, GroupSettings } from "../../reliable/group/group.ts";
import type { Held } from "../../reliable/group/held.ts";
import type { WaitOptions } from "../../run/waiters.ts";
import { ClosedError } from "../../errors.ts";
import { Gathering, type GatheringSource } from "./gathering.ts";
import type { Part } from "../parts/part.ts";
import type { Parts } from "../parts/parts.ts";
import { sharesOf } from "../ring/shares.ts";
import { Taking } from "./taking.ts";

/**
 * A consumer group of a partitioned queue, and this process's consumers in it; a {@link Group} is that of one part.
 *
 * A process reads from a share of the partitions, over one connection each. The share is large enough for each partition
 * to be read by three processes.
 */
export class ConsumerGroup implements TakingGroup {
  readonly settings: GroupSettings;
  readonly #parts: Parts;
  readonly #gathering: Gathering<Held>;
  readonly #sources = new WeakMap<Part, GatheringSource<Held>>();
  readonly #taking: Taking;
  /** The partitions in which the group has been created, or is being created. */
  #madeFor: readonly Part[] | undefined;
  /** Counts looks, each of which begins at the next partition. */
  #rotation = 0;
  #isTaking = false;
  #isClosed = false;

  constructor(parts: Parts, settings: GroupSettings) {
    this.settings = settings;
    this.#parts = parts;
    this.#taking = new Taking(parts, settings.group);
    this.#gathering = new Gathering(`queue "${parts.name}"`);
    // Opening the group in one partition checks the settings, and makes the queue reliable.
    this.groupOf(parts.first);
    parts.onChange(() => this.#onChange());
    // If the partitions are known already, there may be no change to listen for.
    this.#onChange();
  }

  /** The group in one partition, with this client's consumer. */
  groupOf(part: Part): Group {
    return part.openGroup(this.settings).group;
  }

  checkTaking(): void {
    if (this.#isClosed) throw new ClosedError(`queue "${this.#parts.name}"`);
    this.groupOf(this.#parts.first).checkTaking();
  }

  /** Waits for messages, `max` at most; see {@link Group.take}. */
  async take(max: number, options: WaitOptions): Promise<readonly Held[]> {
    this.checkTaking();
    return await this.#taking.during(() => this.#take(max, options));
  }

  async #take(max: number, options: WaitOptions): Promise<readonly Held[]> {
    this.#isTaking = true;
    await this.#parts.following.known(options);
    this.checkTaking();
    const { active } = this.#parts;
    if (this.#madeFor !== active) void this.#make(active);
    if (options.timeout > 0) return await this.#gathering.take(max, options);
    const all = active.map((part) => this.#sourceOf(part));
    const first = this.#rotation++ % all.length;
    const rotated = [...all.slice(first), ...all.slice(0, first)];
    return await this.#gathering.look(max, rotated, options.signal);
  }

  /**
   * Creates the group in all partitions, including those that other processes read. Where the group is missing, a
   * message is deleted once all other groups are done with it. No call waits for this, since a server may be down.
   * Never rejects.
   */
  async #make(active: readonly Part[]): Promise<void> {
    this.#madeFor = active;
    this.#onChange();
    const groups = active.map((part) => this.groupOf(part));
    try {
      await Promise.all(groups.map(async (group) => await group.made()));
    } catch {
      // The process that reads there reports the error. The next take tries again.
      this.#madeFor = undefined;
    }
  }

  /** Ends every wait. Each partition's own group looks after the deliveries that are in flight. */
  async stop(): Promise<void> {
    this.#isClosed = true;
    this.#taking.close();
    await this.#gathering.close();
  }

  #onChange(): void {
    if (this.#isClosed) return;
    const { active } = this.#parts;
    const { self } = this.#parts.following;
    // An open group is created by offers, too, so it misses no message.
    for (const part of active) this.groupOf(part);
    if (!this.#isTaking) return;
    const share = sharesOf(this.#taking.members, self, active.length, PROCESSES).map(
      (i) => active[i] as Part,
    );
    void this.#gathering.setSources(share.map((part) => this.#sourceOf(part)));
  }

  #sourceOf(part: Part): GatheringSource<Held> {
    const known = this.#sources.get(part);
    if (known !== undefined) return known;
    const group = this.groupOf(part);
    const source: GatheringSource<Held> = {
      work: part.queue.server.troubles.work(),
      wait: (max, options) => group.take(max, options),
      putBack: (items) => {
        for (const held of items) void group.settlements.release(held);
      },
    };
    this.#sources.set(part, source);
    return source;
  }
}

/** How many processes read each partition. */
const PROCESSES = 3;
