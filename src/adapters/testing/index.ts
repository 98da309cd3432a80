/**
 * `delayline/testing`: a Redis for examples and tests, found or started, and a clock that tests turn.
 *
 * @module delayline/testing
 */
export { startRedis, type RedisServer, type StartRedisOptions } from "./redis-server.ts";
export { RedisStartError, type RedisStartErrorCode } from "./find-server.ts";
export {
  testClock,
  type Duration,
  type TestClock,
  type TestClockOptions,
} from "./clock/test-clock.ts";
export type { FakeTimers } from "./clock/globals.ts";
