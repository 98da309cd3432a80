import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { OwnServer } from "./own-server.ts";
import { newRedis } from "./redis.ts";

/** A server that is as the doctor wants it. */
export interface SoundServer {
  readonly url: string;
  readonly port: number;
  /** A client of it that may do all, for the length of a test. */
  readonly admin: Redis;
}

/** For all tests of a file: a server that is in order, with nothing on it when a test begins. */
export function useSoundServer(): SoundServer {
  let server: OwnServer;
  let admin: Redis;
  beforeAll(async () => {
    server = await OwnServer.start({ appendOnly: true });
  });
  beforeEach(async () => {
    admin = newRedis(server.url);
    await admin.flushall();
  });
  afterAll(() => server.stop());
  return {
    get url() {
      return server.url;
    },
    get port() {
      return server.port;
    },
    get admin() {
      return admin;
    },
  };
}
