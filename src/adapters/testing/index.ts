/**
 * `delayline/testing`: a Redis for examples and tests, found or started.
 *
 * @module
 */
export { startRedis, type RedisServer, type StartRedisOptions } from "./redis-server.ts";
export { RedisStartError, type RedisStartErrorCode } from "./find-server.ts";
