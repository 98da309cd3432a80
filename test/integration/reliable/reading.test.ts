import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import type { Redis } from "ioredis";
import { Bypass } from "../../../src/redis/bypass.ts";
import { EntriesReader, readEntry } from "../../../src/reliable/group/entries-reader.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

// The entries must come past the decoder of the ioredis that is installed: nothing else shows it if they do not.
const PROTOCOLS = ["2", "3"] as const;

async function connect(
  protocol: string,
): Promise<{ redis: Redis; bypass: Bypass; stream: string }> {
  const redis = newRedis(redisUrl(), { protocol: Number(protocol) as 2 | 3 });
  const stream = uniqueName("stream");
  await redis.xgroup("CREATE", stream, "group", "0", "MKSTREAM");
  return { redis, bypass: Bypass.before(redis)!, stream };
}

const words = (stream: string) => ["STREAMS", stream, ">"] as const;
const HEAD = ["GROUP", "group", "consumer", "COUNT", 1000] as const;

test.each(PROTOCOLS)("entries come past ioredis (RESP%s)", async (protocol) => {
  const { redis, bypass, stream } = await connect(protocol);
  for (let round = 1; round <= 2; round++) {
    const added: { id: string; fields: string[] }[] = [];
    // Larger than what a socket delivers at once.
    for (const size of [0, 1, 100, 300_000, 1, 70_000]) {
      const fields = [
        "a",
        "deadline and id",
        "p",
        "x".repeat(size),
        ...(size === 1 ? ["n", "1"] : []),
      ];
      added.push({ id: (await redis.xadd(stream, "*", ...fields)) as string, fields });
    }
    const reader = new EntriesReader();
    bypass.open(reader);
    expect(await redis.xreadgroupBuffer(...HEAD, ...words(stream))).toBeNull();
    const expected = added.map(({ id, fields }) =>
      readEntry(
        id,
        fields.map((text) => Buffer.from(text)),
      ),
    );
    expect(isDeepStrictEqual(reader.entries, expected)).toBe(true);
    expect(await redis.xlen(stream)).toBe(6 * round);
  }
});

test.each(PROTOCOLS)("what is no entry goes to ioredis (RESP%s)", async (protocol) => {
  const { redis, bypass, stream } = await connect(protocol);
  const refused = new EntriesReader();
  bypass.open(refused);
  const other = ["GROUP", "none", "consumer"] as const;
  await expect(redis.xreadgroupBuffer(...other, ...words(stream))).rejects.toThrow("NOGROUP");
  bypass.open(new EntriesReader());
  expect(await redis.xreadgroupBuffer(...HEAD, ...words(stream))).toBeNull();

  const unblocked = new EntriesReader();
  const id = await redis.client("ID");
  bypass.open(unblocked);
  const reading = redis.xreadgroupBuffer(...HEAD, "BLOCK", 0, ...words(stream));
  const peer = newRedis();
  await eventually(async () => expect(await peer.client("UNBLOCK", id)).toBe(1));
  expect(await reading).toBeNull();
  expect(unblocked.isDone).toBe(false);

  const late = new EntriesReader();
  bypass.open(late);
  const blocked = redis.xreadgroupBuffer(...HEAD, "BLOCK", 0, ...words(stream));
  await peer.xadd(stream, "*", "a", "deadline", "p", "payload");
  expect(await blocked).toBeNull();
  expect(late.entries).toHaveLength(1);
  expect(await redis.ping()).toBe("PONG");
});
