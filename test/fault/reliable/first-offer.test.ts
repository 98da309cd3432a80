import { expect, test } from "vitest";
import { OfferError, OfferManyError } from "../../../src/index.ts";
import { openGroup } from "../../../src/lua/reliable/groups.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

/* The first offer of a process creates the stream and the group. It must not fail in ways that later offers do not. */

test("the reply to creating stream and group is lost, and the first offer is stored", async () => {
  const proxy = await startProxy(redisUrl());
  const line = newLineThatMayFail({ redis: proxy.url, codec: "json" });
  const queue = line.getReliableQueue<number>(uniqueName());
  const lost = proxy.loseReplyTo(openGroup.sha);
  await queue.offer(1, 0);
  await lost;
  expect(await queue.take()).toMatchObject({ payload: 1, attempt: 1 });
});

test("the key holds another type: the first offer is rejected as later ones are", async () => {
  const name = uniqueName();
  await newRedis().set(queueKeys(name).stream, "not a stream");
  const queue = newLine({ transfer: false, codec: "json" }).getReliableQueue<number>(name);
  const error = await queue.offer(1, 0).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(OfferError);
  expect(error).toMatchObject({ effect: "none", reply: "WRONGTYPE" });
  const failure = await queue
    .offerMany([1, 2].map((payload) => ({ payload, delay: 0 })))
    .catch((reason: unknown) => reason);
  expect(failure).toBeInstanceOf(OfferManyError);
  const refused: unknown = expect.objectContaining({ effect: "none", reply: "WRONGTYPE" });
  expect((failure as OfferManyError).results).toEqual([refused, refused]);
});

test("the first offer is aborted while stream and group are created, and is not stored", async () => {
  const queue = newLine({ transfer: false }).getReliableQueue<number>(uniqueName());
  const controller = new AbortController();
  const offering = queue.offer(1, 0, { signal: controller.signal });
  const reason = new Error("changed my mind");
  controller.abort(reason);
  const error = await offering.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OfferError);
  expect(error).toMatchObject({ effect: "none", cause: reason });
});
