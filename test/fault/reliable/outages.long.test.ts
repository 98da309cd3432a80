import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { OfferError, OfferManyError, type OfferResult } from "../../../src/index.ts";
import { ack, retryLater } from "../../../src/lua/reliable/deliveries.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer, type OwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { Roles } from "../../helpers/roles.ts";
import { startProxy, type ProxyConnection, type TcpProxy } from "../../helpers/tcp-proxy.ts";
import { Crew, MESSAGES, RELIABLE_MESSAGES } from "./crew.ts";
import { completedCount, readNotes, settle } from "./handled.ts";
import { upTo } from "../../helpers/numbers.ts";

/*
 * Redis is killed and comes back, forgets its scripts, and ends connections. The network loses Redis's replies:
 * messages that were read, and verdicts of settlements. No process dies, so no lease ends by itself. A process that
 * never got the messages delivered to it has to find them by itself.
 */

const WORKERS = 3;

/** Longest pause between two troubles, in milliseconds. */
const PAUSE = 300;

/** Messages that are offered at once, every tenth of a second. */
const CHUNK = 80;

/** Milliseconds after which the storm ends, whatever is left. */
const LONGEST = 30_000 + MESSAGES * 10;

/** The settlement scripts, as they are sent once Redis knows them. */
const SETTLEMENTS = [ack.sha, retryLater.sha];

test(
  `${MESSAGES} messages in a storm of outages and lost replies: none is lost, none gets stuck`,
  async () => {
    // Keeps the file short, so that restarts are quick.
    const args = ["--auto-aof-rewrite-min-size", "1mb"];
    const server = await startOwnServer({ appendOnly: true, args });
    const redis = newRedis(server.url);
    const ledger = newRedis();
    const proxy = await startProxy(server.url);
    const name = uniqueName();
    const { stream, retries, retrying, timeouts } = queueKeys(name);
    const env = { REDIS: proxy.url, LEDGER: redisUrl(), QUEUE: name, LEASE: "3000" };
    const crew = await Crew.start(WORKERS, { ...env, WORK: "stumble", PAUSE: "20" });

    let latest = performance.now() + LONGEST;
    const producing = produce(server.url, name);
    producing.catch(() => (latest = 0));
    const isDone = async () =>
      performance.now() > latest || (await completedCount(ledger, name)) >= MESSAGES;
    const troubles = await rage({ server, redis, proxy }, isDone);
    const { stored, refused } = await producing;
    // Two beats later the unnoticed messages are back.
    await eventually(
      async () => {
        const [inFlight] = (await redis.xpending(stream, "default")) as [number];
        const left = [await redis.zcard(timeouts), await redis.zcard(retries)];
        left.push(await redis.hlen(retrying), await redis.xlen(stream), inFlight);
        expect(left).toEqual([0, 0, 0, 0, 0]);
      },
      { within: 60_000, what: "nothing is delayed, retrying, ready or in flight" },
    );
    await crew.areThere();

    const account = settle(stored, await readNotes(ledger, name));
    if (RELIABLE_MESSAGES !== undefined) console.log({ ...troubles, refused, ...account.counts });
    expect(account.lost).toEqual([]);
    expect(account.early).toEqual([]);
    expect(stored.size).toBe(MESSAGES);
    for (const count of Object.values(troubles)) expect(count).toBeGreaterThan(0);
  },
  LONGEST + 120_000,
);

/** Offers all messages, but not through the proxy. Returns which were stored, with their deadlines. */
async function produce(url: string, name: string) {
  const line = newLineThatMayFail({ redis: url, codec: "json", transfer: false });
  const queue = line.getReliableQueue<number>(name);
  const stored = new Map<number, number>();
  const unclear = new Set<number>();
  let refused = 0;
  const note = (ids: readonly number[], results: readonly (OfferResult | OfferError)[]) => {
    for (const [i, result] of results.entries()) {
      // A message that may already be stored may arrive at any time.
      if (result instanceof OfferError) unclear.add(ids[i] as number);
      else stored.set(ids[i] as number, unclear.has(ids[i] as number) ? 0 : result.deadline);
    }
  };
  const offerUntilStored = async (ids: readonly number[]): Promise<void> => {
    const messages = ids.map((payload) => ({ payload, delay: Math.random() * 500 }));
    try {
      note(ids, await queue.offerMany(messages));
    } catch (error) {
      if (!(error instanceof OfferManyError)) throw error;
      note(ids, (error as OfferManyError<OfferResult>).results);
      const rest = ids.filter((id) => !stored.has(id));
      refused += rest.length;
      await offerUntilStored(rest);
    }
  };
  for (let from = 0; from < MESSAGES; from += CHUNK) {
    await offerUntilStored(upTo(Math.min(CHUNK, MESSAGES - from)).map((i) => from + i));
    await sleep(100);
  }
  return { stored, refused };
}

interface Scene {
  readonly server: OwnServer;
  readonly redis: Redis;
  readonly proxy: TcpProxy;
}

/** Makes trouble until all is done. Returns how often each kind happened. */
async function rage({ server, redis, proxy }: Scene, isDone: () => Promise<boolean>) {
  const loseReply = newLosses(proxy);
  const troubles = {
    restarts: async () => {
      await server.kill();
      await server.restart();
      return true;
    },
    scriptsForgotten: async () => (await redis.script("FLUSH")) === "OK",
    clientsKilled: async () => Number(await redis.call("CLIENT", "KILL", "TYPE", "normal")) > 0,
    readsLost: () => loseReply("blocking"),
    settlementsLost: () => loseReply("background"),
  };
  const counts = {
    restarts: 0,
    scriptsForgotten: 0,
    clientsKilled: 0,
    readsLost: 0,
    settlementsLost: 0,
  };
  const kinds = Object.keys(troubles) as (keyof typeof troubles)[];
  // Each kind in turn, at a random pace.
  for (let n = 0; !(await isDone()); n++) {
    const kind = kinds[n % kinds.length] as keyof typeof troubles;
    await sleep(Math.random() * PAUSE);
    if (await troubles[kind]()) counts[kind]++;
  }
  return counts;
}

/** Cuts the connection of the next worker that is sent messages, or the verdict of a settlement. */
function newLosses(proxy: TcpProxy) {
  const roles = new Roles(proxy);
  const settling = new Set<ProxyConnection>();
  let wanted: { readonly role: "blocking" | "background"; readonly lost: () => void } | undefined;
  const isOf = (connection: ProxyConnection, role: string) =>
    roles.nameOf(connection)?.startsWith(`delayline:${role}`) === true;
  roles.onRequest = (chunk, connection) => {
    if (wanted?.role !== "background" || !isOf(connection, "background")) return;
    if (SETTLEMENTS.some((sha) => chunk.includes(sha))) settling.add(connection);
  };
  proxy.onReply = (chunk, connection) => {
    if (wanted === undefined || !isOf(connection, wanted.role)) return "forward";
    const isHit =
      wanted.role === "blocking" ? chunk.includes("\r\n$1\r\na\r\n") : settling.has(connection);
    if (!isHit) return "forward";
    settling.clear();
    wanted.lost();
    return "cut";
  };
  /** Resolves when one was lost, or to false if there was none for three seconds. */
  return async (role: "blocking" | "background"): Promise<boolean> => {
    const lost = new Promise<boolean>((resolve) => {
      wanted = { role, lost: () => resolve(true) };
    });
    const isLost = await Promise.race([lost, sleep(3000, false)]);
    wanted = undefined;
    settling.clear();
    return isLost;
  };
}
