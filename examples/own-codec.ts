/**
 * A codec of your own: JSON that is checked when it is read.
 *
 * A message that is not what it should be never reaches your code. It is put aside, with an error
 * that says so, and the next one follows.
 *
 *   npx tsx examples/own-codec.ts
 */
import assert from "node:assert/strict";
import { Delayline, DecodeError, type Codec } from "delayline";
import { startRedis } from "delayline/testing";
import { Redis } from "ioredis";

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
const client = new Redis(redis.url);
await using line = new Delayline({ redis: client });
const name = `reminders-${process.pid}`;
const reminders = line.getBlockingQueue<Reminder>(name, { codec: reminderCodec });

// Somebody else writes into the same queue, and has got it wrong.
await line.getDelayedQueue(name, { codec: "json" }).offer({ to: "ada", body: "milk" }, 100);
await line
  .getDelayedQueue<Reminder>(name, { codec: reminderCodec })
  .offer({ to: "ada", text: "buy milk" }, 200);

await assert.rejects(reminders.take(), (error) => {
  assert.ok(error instanceof DecodeError);
  console.log(error.message);
  assert.equal(error.bytes.toString(), `{"to":"ada","body":"milk"}`);
  return true;
});

const reminder = await reminders.take();
console.log(`${reminder.to}: ${reminder.text}`);
assert.deepEqual(reminder, { to: "ada", text: "buy milk" });

// Nothing is lost: the bytes that could not be read are in a list of their own.
const quarantine = `delayline_quarantine:{${name}}`;
assert.deepEqual(await client.lrange(quarantine, 0, -1), [`{"to":"ada","body":"milk"}`]);
await client.del(quarantine);
await line.close();
client.disconnect();
