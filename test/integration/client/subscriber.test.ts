import { beforeEach, expect, onTestFinished, test } from "vitest";
import { Connections } from "../../../src/redis/connections.ts";
import { Subscriber, type Listener } from "../../../src/redis/subscriber.ts";
import { Troubles } from "../../../src/redis/troubles.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy, type TcpProxy } from "../../helpers/tcp-proxy.ts";

let subscriber: Subscriber;
let connections: Connections;
let errors: string[];
let proxy: TcpProxy;

beforeEach(async () => {
  errors = [];
  proxy = await startProxy(redisUrl());
  const report = ({ message }: Error) => void errors.push(message);
  const troubles = new Troubles({ report, onRecovered: () => {} });
  connections = new Connections(proxy.url, 2000, {
    onTime: () => {},
    onLost: () => {},
    beforeTaking: () => undefined,
    troubles,
  });
  subscriber = new Subscriber(connections, troubles);
  onTestFinished(() => {
    subscriber.close();
    connections.close();
  });
});

/** A listener that records what it hears. "on" means that its channel is subscribed. */
function newListener(): Listener & { readonly heard: string[] } {
  const heard: string[] = [];
  return {
    heard,
    onSubscribed: () => void heard.push("on"),
    onMessage: (message) => void heard.push(message),
  };
}

test("a channel that was left stays unsubscribed, even after a reconnect", async () => {
  const redis = newRedis();
  const [left, kept] = [uniqueName("left"), uniqueName("kept")];
  const count = async (channel: string) => (await redis.pubsub("NUMSUB", channel))[1];
  const [first, second, third] = [newListener(), newListener(), newListener()];
  subscriber.listen(left, first);
  subscriber.listen(kept, second);
  await eventually(() => first.heard.length + second.heard.length === 2);

  // This channel has another listener.
  subscriber.unlisten(kept, first);
  subscriber.unlisten(left, first);
  await eventually(async () => (await count(left)) === 0);
  await redis.publish(left, "message");
  await redis.publish(kept, "message");
  await eventually(() => second.heard.length === 2);
  expect([first.heard, second.heard]).toEqual([["on"], ["on", "message"]]);

  proxy.cut();
  await eventually(() => second.heard.length >= 3);
  await eventually(async () => expect([await count(left), await count(kept)]).toEqual([0, 1]));

  // Without a channel the subscriber reopens and waits.
  subscriber.unlisten(kept, second);
  await eventually(async () => (await count(kept)) === 0);
  const reopened = new Promise<void>((resolve) => {
    proxy.onRequest = (chunk) => {
      if (chunk.includes("delayline:subscriber")) setTimeout(resolve, 50);
    };
  });
  proxy.cut();
  await reopened;
  subscriber.listen(left, third);
  await eventually(() => third.heard.length > 0);
  await eventually(async () => {
    await redis.publish(left, "message");
    return third.heard.includes("message");
  });
  // Redis would refuse an empty SUBSCRIBE. A connection that ends in the meantime may be reported.
  const refused = errors.filter((message) => message.includes("subscribe"));
  expect(refused.filter((message) => !message.includes("Connection is closed"))).toEqual([]);
});

test("a reconnected subscriber stays when the background connection returns to the same server", async () => {
  const redis = newRedis();
  const channel = uniqueName("channel");
  const listener = newListener();
  subscriber.listen(channel, listener);
  await eventually(() => listener.heard.length === 1);
  await connections.background.ping();

  const before = proxy.acceptedCount;
  // ioredis waits 50 ms before it reconnects; the subscriber is reopened at once.
  const isBack = new Promise<void>((resolve) => connections.background.once("ready", resolve));
  proxy.cut();
  await isBack;
  // Runs after the question which server it is.
  await connections.background.info("server");
  await eventually(async () => {
    await redis.publish(channel, "message");
    return listener.heard.includes("message");
  });
  expect(listener.heard.filter((heard) => heard === "on")).toHaveLength(2);
  expect(proxy.acceptedCount - before).toBe(2);
  expect(errors.filter((message) => message.includes("subscribe"))).toEqual([]);
});

test("a connection that has died silently is replaced, and its channels are subscribed again", async () => {
  const listener = newListener();
  subscriber.listen(uniqueName("channel"), listener);
  await eventually(() => listener.heard.length === 1);
  for (const connection of proxy.connections) connection.swallow();
  await eventually(() => expect(listener.heard).toEqual(["on", "on"]));
});
