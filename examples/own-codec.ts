/**
 * A codec of your own: JSON that is checked when it is read.
 *
 * A message of another shape never reaches your code. It is set aside with an error, and the next one follows.
 *
 *   npx tsx examples/own-codec.ts
 */
import assert from "node:assert/strict";
import { Delayline, DecodeError, type Codec } from "delayline";
import { startRedis } from "delayline/testing";

interface Reminder {
  readonly to: string;
  readonly text: string;
}

const reminderCodec: Codec<Reminder> = {
  name: "reminder",
  encode: ({ to, text }) => Buffer.from(JSON.stringify({ to, text })),
  decode(bytes) {
    const value = JSON.parse(bytes.toString()) as Partial<Reminder> | null;
    if (typeof value?.to !== "string") throw new TypeError("to must be a string");
    if (typeof value.text !== "string") throw new TypeError("text must be a string");
    return { to: value.to, text: value.text };
  },
};

await using redis = await startRedis();
await using line = new Delayline({ redis: redis.url });
const name = `reminders-${process.pid}`;
const reminders = line.getBlockingQueue<Reminder>(name, { codec: reminderCodec });

// Another program offers a malformed message to the same queue.
await using other = new Delayline({ redis: redis.url });
await other.getDelayedQueue(name, { codec: "json" }).offer({ to: "ada", body: "milk" }, 100);

// This handle takes over the codec of the one above.
await line.getDelayedQueue<Reminder>(name).offer({ to: "ada", text: "buy milk" }, 200);

await assert.rejects(reminders.take(), (error) => {
  assert.ok(error instanceof DecodeError);
  console.log(error.message);
  assert.equal(error.bytes.toString(), `{"to":"ada","body":"milk"}`);
  return true;
});

const reminder = await reminders.take();
console.log(`${reminder.to}: ${reminder.text}`);
assert.deepEqual(reminder, { to: "ada", text: "buy milk" });

// Nothing is lost: the unreadable bytes are in the quarantine.
for await (const bytes of reminders.quarantine) {
  assert.equal(bytes.toString(), `{"to":"ada","body":"milk"}`);
}
assert.equal(await reminders.quarantine.size(), 1);
await reminders.quarantine.clear();
