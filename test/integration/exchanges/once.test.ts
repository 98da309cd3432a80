import { describe, expect, test } from "vitest";
import type { OfferOptions, ReliableQueue } from "../../../src/index.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;
const KEPT = { key: "k", partitionKey: "saga", once: { for: HOUR } } as const;
const AGAIN = { ...KEPT, once: "handled" } as const;

const again = (queue: ReliableQueue<string>) => queue.offer("again", HOUR, AGAIN);

describe.each([
  { kind: "an ordinary queue", partitions: undefined },
  { kind: "partitions", partitions: 3 },
])("in $kind", ({ partitions }) => {
  const newQueue = (options: object = {}) => {
    const name = uniqueName("exchange-once");
    const line = newLine();
    const more = partitions === undefined ? {} : { partitions };
    return { name, line, queue: line.getReliableQueue<string>(name, { ...more, ...options }) };
  };

  test.each([0, HOUR])(
    "ack with an offer notes the end of what was offered with once (keepHandled: %i)",
    async (keepHandled) => {
      const { queue } = newQueue({ keepHandled });
      const { id } = await queue.offer("first", 0, KEPT);
      const offer = [{ payload: "next", delay: HOUR, key: "next", partitionKey: "saga" }];
      expect(await (await queue.take()).ack({ offer })).toMatchObject([{ outcome: "added" }]);
      const handledAt = expect.any(Number) as number;
      const existing = { outcome: "existing", id, stage: "handled", handledAt };
      expect(await again(queue)).toMatchObject(existing);
      expect(await queue.handled(id)).toHaveLength(keepHandled === 0 ? 0 : 1);
      expect(await queue.stats()).toMatchObject({ inFlight: 0, ready: 0, delayed: 1 });
    },
  );

  test("one of a turn was offered with once, and another was not", async () => {
    const { queue } = newQueue();
    const { id } = await queue.offer("first", 0, KEPT);
    await queue.offer("plain", 0, { key: "plain", partitionKey: "saga" });
    await eventually(async () => (await queue.stats()).ready === 2);
    const taken = [];
    while (taken.length < 2) taken.push(...(await queue.takeMany({ limit: 2 - taken.length })));
    const offer = [{ payload: "next", delay: HOUR }];
    const added = [{ outcome: "added" }];
    expect(await Promise.all(taken.map((one) => one.ack({ offer })))).toMatchObject([added, added]);
    expect(await again(queue)).toMatchObject({ outcome: "existing", id, stage: "handled" });
    const other = { ...AGAIN, key: "plain" };
    expect(await queue.offer("again", HOUR, other)).toMatchObject({ outcome: "added" });
  });

  test("the next step may have the key of what it follows, which is remembered behind it", async () => {
    const { queue } = newQueue();
    const { id } = await queue.offer("first", 0, KEPT);
    const { key, partitionKey } = KEPT;
    const step = { payload: "next", delay: HOUR, key, partitionKey };
    const [next] = (await (await queue.take()).ack({ offer: [step] })) || [];
    expect(next).toMatchObject({ outcome: "added" });
    expect(await again(queue)).toMatchObject({ id: next?.id, stage: "delayed" });
    await queue.cancel(next?.id ?? "");
    expect(await again(queue)).toMatchObject({ outcome: "existing", id, stage: "handled" });
  });

  test("an ack with an offer that came too late notes nothing", async () => {
    const { queue } = newQueue();
    const { id } = await queue.offer("first", 0, KEPT);
    const delivery = await queue.take();
    await queue.revoke(id);
    expect(await delivery.ack({ offer: [{ payload: "next", delay: HOUR }] })).toBe(false);
    expect(await again(queue)).toMatchObject({ outcome: "added" });
  });

  test("notes the end when the next step goes to another queue", async () => {
    const { queue, line } = newQueue();
    const to = line.getReliableQueue<string>(uniqueName("to"), partitions ? { partitions } : {});
    const { id } = await queue.offer("first", 0, KEPT);
    const offer = [{ payload: "next", delay: HOUR, key: "k", partitionKey: "saga" }];
    expect(await (await queue.take()).ack({ offer, to })).toMatchObject([{ outcome: "added" }]);
    expect(await again(queue)).toMatchObject({ outcome: "existing", id, stage: "handled" });
    // Its own records are another queue's.
    expect(await to.offer("again", HOUR, AGAIN)).toMatchObject({ stage: "delayed" });
  });

  test("cancel with an offer frees the key of what was offered with once", async () => {
    const { queue } = newQueue();
    const offer = { payload: "next", delay: HOUR, key: "next", partitionKey: "saga" };
    const options = { offer, partitionKey: "saga" };
    await queue.offer("delayed", HOUR, KEPT);
    expect(await queue.cancel("k", options)).toMatchObject({ cancelled: true });
    expect(await again(queue)).toMatchObject({ outcome: "added" });
    await queue.promote("k", { partitionKey: "saga" });
    // A retry has a record besides its entry of the index.
    await (await queue.take()).nack({ delay: HOUR });
    expect(await again(queue)).toMatchObject({ outcome: "existing", stage: "retrying" });
    const last = { ...offer, key: "last" };
    expect(await queue.cancel("k", { ...options, offer: last })).toMatchObject({ cancelled: true });
    expect(await again(queue)).toMatchObject({ outcome: "added" });
    expect(await queue.stats()).toMatchObject({ retries: 0, delayed: 3 });
  });

  test("cancel with an offer takes all that a message has collected", async () => {
    const { queue } = newQueue();
    const { partitionKey } = KEPT;
    const options = { key: "c", partitionKey, onDuplicate: "collect" } as const;
    for (const payload of ["a", "b", "c"]) await queue.offer(payload, HOUR, options);
    const offer = { payload: "new", delay: 0, key: "c", partitionKey };
    expect(await queue.cancel("c", { offer, partitionKey })).toMatchObject({
      cancelled: true,
      offered: { outcome: "added" },
    });
    expect(await collect(queue.soonest())).toHaveLength(0);
    const delivery = await queue.take();
    expect(delivery).toMatchObject({ payload: "new", payloads: ["new"], key: "c" });
    // What comes after it collects anew.
    await delivery.ack({ offer: [{ payload: "d", delay: HOUR, key: "c", partitionKey }] });
    expect(await queue.offer("e", 0, options)).toMatchObject({ outcome: "collected" });
    expect((await queue.take()).payloads).toEqual(["d", "e"]);
  });

  test.each([
    ["once", "handled"],
    ["once", { for: 1 }],
    ["once", null],
    ["onDuplicate", "ignore"],
    ["onDuplicate", "replace"],
    ["onDuplicate", "collect"],
  ])("refuses %s: %j in what follows", async (option, value) => {
    const { queue } = newQueue();
    const partitionKey = "saga";
    await queue.offer("delayed", HOUR, { key: "k", partitionKey });
    await queue.offer("first", 0);
    const delivery = await queue.take();
    const bad = { [option]: value } as Pick<OfferOptions, "once">;
    const offer = { payload: "next", delay: HOUR, key: "n", partitionKey, ...bad };
    const text = `${option} cannot be used`;
    await expect(queue.cancel("k", { offer, partitionKey })).rejects.toThrow(
      new RegExp(`^offer\\.${text}`),
    );
    const acking = delivery.ack({ offer: [{ payload: "good", delay: HOUR }, offer] });
    await expect(acking).rejects.toThrow(new RegExp(`^offer\\[1\\]\\.${text}`));
    await expect(acking).rejects.toThrow(TypeError);
    expect(await queue.stats()).toMatchObject({ delayed: 1, inFlight: 1 });
  });
});
