import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { OwnServer } from "./own-server.ts";
import { newRedis } from "./redis.ts";

/** A server in which the doctor finds nothing wrong. */
export interface SoundServer {
  readonly url: string;
  readonly port: number;
  /** A client with all rights, for the current test. */
  readonly admin: Redis;
}

/** Starts a sound server for all tests of a file. It is empty when a test begins. */
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
