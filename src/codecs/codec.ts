/**
 * Converts payloads to bytes and back.
 *
 * `encode` throws for a payload that it cannot encode, and `decode` for bytes that it cannot read. The bytes that
 * `encode` returned must not change afterwards. `decode` must not keep a reference to its buffer.
 */
export interface Codec<T = unknown> {
  /** The name in error messages. */
  readonly name: string;
  encode(payload: T): Uint8Array;
  decode(bytes: Buffer): T;
}
