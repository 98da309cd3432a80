/** The stable codes of {@link RedisStartError}. */
export type RedisStartErrorCode =
  /** `REDIS_URL` is not set, and there is no server to start. The message says what to install. */
  | "REDIS_NOT_FOUND"
  /** A server was started but did not become ready. The message ends with its last log lines. */
  | "REDIS_START_FAILED"
  /** `REDIS_URL` is not a Redis URL, or the server there does not answer. */
  | "REDIS_UNREACHABLE";

/** `startRedis` could not provide a Redis. Its message contains no password. */
export class RedisStartError extends Error {
  override readonly name = "RedisStartError";

  /** A stable name for programs to compare with; messages may be reworded, codes are not. */
  readonly code: RedisStartErrorCode;

  constructor(code: RedisStartErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
