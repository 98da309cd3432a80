/**
 * `delayline/testing`: a Redis for examples and tests, found or started.
 *
 * @module
 */
export { startRedis } from "./redis-server.ts";
export type { RedisServer, StartRedisOptions } from "./redis-server.ts";
export { RedisStartError } from "./start-error.ts";
export type { RedisStartErrorCode } from "./start-error.ts";
