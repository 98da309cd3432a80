import { Group } from "../../../src/reliable/group/group.ts";
import { Notices } from "../../../src/reliable/group/notices.ts";
import { HeldDeliveries, type Origin } from "../../../src/reliable/group/held.ts";
import { LeaseKeeper } from "../../../src/reliable/group/lease-keeper.ts";
import { Reader } from "../../../src/reliable/group/reader.ts";
import { ReclaimTask } from "../../../src/reliable/group/reclaim-task.ts";
import { ListWatch } from "../../../src/reliable/list-watch.ts";
import { closeWithin, newOpen, type Kind } from "./running.ts";

const SETTINGS = {
  group: "workers",
  start: "0",
  leaseTimeout: 300,
  maxAttempts: 3,
  keepHandled: 0,
};

const MEMBER = { group: "workers", consumer: "me" };

/** Holds nothing. */
const newHeld = () => new HeldDeliveries({} as Origin, () => {});

const doNothing = () => Promise.resolve();

/** Parts of a reliable queue. */
export const groups: Readonly<Record<string, Kind>> = {
  "a consumer group": {
    files: ["group.ts", "settlements.ts"],
    make: (url) => {
      const { shared, open, queue } = newOpen(url);
      open.openReliable();
      const group = new Group(queue, SETTINGS, open.pauses, new Notices(queue));
      return {
        start: () => [group.take(1, { timeout: Infinity }), group.take(5, { timeout: 0 })],
        close: () =>
          closeWithin(shared, async () => {
            open.pauses.close();
            await group.stop();
            await group.close();
          }),
      };
    },
  },
  "a reader": {
    files: ["reader.ts"],
    make: (url) => {
      const { shared, open, queue } = newOpen(url);
      const held = newHeld();
      const reader = new Reader(queue, MEMBER, open.pauses, {
        held,
        isOnly: false,
        accept: () => [],
        remakeGroup: async () => {
          await shared.connections.commands.xgroup(
            "CREATE",
            queue.keys.stream,
            "workers",
            "0",
            "MKSTREAM",
          );
        },
        checkStrangers: doNothing,
        release: doNothing,
        onConnected: undefined,
      });
      return {
        start: () => reader.wait(1, { timeout: Infinity }),
        close: async () => {
          open.pauses.close();
          await closeWithin(shared, () => reader.close());
        },
      };
    },
  },
  "a lease keeper": {
    files: ["lease-keeper.ts"],
    make: (url) => {
      const { shared, queue } = newOpen(url);
      const keeper = new LeaseKeeper(queue, MEMBER, newHeld(), {
        // The first beat comes at once.
        leaseTimeout: 3,
        readingSince: () => Infinity,
        onStranger: () => Promise.resolve(),
        onOverdue: () => {},
        lose: doNothing,
        livesOn: () => false,
      });
      return {
        start: () => keeper.start(),
        close: () => closeWithin(shared, () => keeper.close()),
      };
    },
  },
  "a reclaim task": {
    files: ["reclaim-task.ts", "task.ts"],
    make: (url) => {
      const { shared, queue } = newOpen(url);
      const task = new ReclaimTask(queue, MEMBER, SETTINGS);
      return { start: () => task.start(), close: () => closeWithin(shared, () => task.close()) };
    },
  },
  "a list watch": {
    files: ["list-watch.ts"],
    make: (url) => {
      const { shared, queue } = newOpen(url);
      const watch = new ListWatch(queue, () => {});
      return {
        start: () => watch.switch(true),
        close: () => closeWithin(shared, () => watch.close()),
      };
    },
  },
};
