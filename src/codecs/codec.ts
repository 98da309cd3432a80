/**
 * How payloads become bytes and bytes become payloads: two functions and a name.
 *
 * `encode` throws for what it cannot encode, `decode` for bytes that it cannot read. `encode` gives
 * bytes that nobody changes afterwards; `decode` keeps nothing of the buffer that it is given.
 */
export interface Codec<T = unknown> {
  /** Named in errors. */
  readonly name: string;
  encode(payload: T): Uint8Array;
  decode(bytes: Buffer): T;
}
