/**
 * A user's program. It is compiled, and run, in every kind of project: offers a message to a queue
 * and takes it, with each way to say where Redis is.
 */
import { Delayline, DelaylineError, type DelaylineOptions } from "delayline";
import { LongCodec } from "delayline/redisson";
import { startRedis, type RedisServer } from "delayline/testing";
import { Cluster, Redis, type RedisOptions } from "ioredis";

interface Order {
  readonly id: number;
}

async function deliver(redis: NonNullable<DelaylineOptions["redis"]>, name: string) {
  const line = new Delayline({ redis });
  line.on("error", (error: DelaylineError) => console.error(error));
  try {
    await line.getDelayedQueue<Order>(name).offer({ id: 42 }, 10, { key: "order:42" });
    const { id }: Order = await line.getBlockingQueue<Order>(name).take();
    const numbers = line.getDelayedQueue(`${name}-numbers`, { codec: new LongCodec() });
    const { outcome } = await numbers.offer(1n, 60_000);
    await numbers.clear();
    return `${id} ${outcome}`;
  } finally {
    await line.close();
  }
}

async function main(): Promise<void> {
  const server: RedisServer = await startRedis();
  const name = process.argv[2] ?? "orders";
  const options: RedisOptions = { host: new URL(server.url).hostname, port: server.port };
  const client = new Redis(server.url, {
    reconnectOnError: (error) => error.message.startsWith("READONLY"),
  });
  const delivered = [
    await deliver(server.url, name),
    await deliver(options, name),
    await deliver(client, name),
  ];
  // Not connected: only that it is accepted.
  const cluster = new Cluster([{ port: 1 }], { lazyConnect: true, slotsRefreshInterval: 2000 });
  await new Delayline({ redis: cluster }).close();
  cluster.disconnect();
  client.disconnect();
  await server.stop();
  console.log(JSON.stringify(delivered));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
