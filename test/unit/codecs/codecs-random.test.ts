import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { json } from "../../../src/codecs/json.ts";
import { msgpack } from "../../../src/codecs/msgpack.ts";
import {
  JsonJacksonCodec,
  Kryo5Codec,
  LongCodec,
  MsgPackJacksonCodec,
  type KryoScalar,
} from "../../../src/adapters/redisson/index.ts";

// Random values, from a seed that a failure names.

const SEED = Number(process.env["CODEC_SEED"] ?? Date.now() % 2 ** 32);

/** Mulberry32: numbers from 0 up to, but excluding, 1. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const random = randomFrom(SEED);
const below = (count: number) => Math.floor(random() * count);
const oneOf = <T>(...choices: (() => T)[]) => choices[below(choices.length)]!();
const many = <T>(most: number, make: () => T) => Array.from({ length: below(most + 1) }, make);

const text = () =>
  many(below(4) === 0 ? 80 : 8, () =>
    oneOf(
      () => String.fromCharCode(below(128)),
      () => String.fromCodePoint(0x80 + below(0xd780)),
      () => String.fromCodePoint(0x10000 + below(0x10000)),
    ),
  ).join("");
/** Whole numbers that come back as the same type: a bigint only from 2^53 on. */
const whole = () => {
  const bits = 1n + BigInt(below(63));
  const value =
    BigInt.asIntN(64, BigInt(Math.floor(random() * 2 ** 53)) << (bits % 12n)) % 2n ** bits;
  return value < 2n ** 53n && value > -(2n ** 53n) ? Number(value) : value;
};
const double = () => (random() - 0.5) * 10 ** (below(600) - 300);
const date = () => new Date(Math.floor((random() - 0.2) * 4e12));
const bytes = () => Buffer.from(many(40, () => below(256)));
const flat = () =>
  oneOf<unknown>(
    text,
    whole,
    double,
    () => null,
    () => random() < 0.5,
  );
// Neither a name that MessagePack's reader changes, nor the reserved one.
const key = () => `k${text()}`;

function tree(depth: number, leaf: () => unknown): unknown {
  if (depth === 0 || below(3) === 0) return leaf();
  return oneOf<unknown>(
    () => many(5, () => tree(depth - 1, leaf)),
    () => Object.fromEntries(many(5, () => [key(), tree(depth - 1, leaf)])),
  );
}

interface AnyCodec {
  readonly name: string;
  encode(payload: never): Uint8Array;
  decode(raw: Buffer): unknown;
}

const rich = () => oneOf<unknown>(flat, date, bytes);

const codecs: [AnyCodec, () => unknown][] = [
  [json, () => tree(4, flat)],
  [msgpack, () => tree(4, rich)],
  [new JsonJacksonCodec(), () => tree(4, rich)],
  [new MsgPackJacksonCodec(), () => tree(4, rich)],
  [new Kryo5Codec(), () => oneOf<KryoScalar>(text, whole, double, date, bytes, () => null)],
  [new LongCodec(), whole],
];

describe.each(codecs.map(([codec, make]) => ({ name: codec.name, codec, make })))(
  "$name",
  ({ codec, make }) => {
    test("gives back 500 random values", () => {
      for (let i = 0; i < 500; i++) {
        const payload = make();
        const encoded = Buffer.from(codec.encode(payload as never));
        expectEqual(codec.decode(encoded), payload);
      }
    });

    test("reads or refuses 2,500 damaged encodings, and nothing beside them", () => {
      for (let i = 0; i < 500; i++) {
        const encoded = Buffer.from(codec.encode(make() as never));
        for (let j = 0; j < 5; j++) {
          const damaged = damage(encoded);
          // Twice, in different surroundings: the bytes behind the buffer must not matter.
          const first = outcome(codec, inside(damaged, 0x00));
          expectEqual(outcome(codec, inside(damaged, 0xaa)), first);
        }
      }
    });
  },
);

/** What vitest's `toEqual` expects. It takes a hundred times as long, so it only looks at what differs. */
function expectEqual(actual: unknown, expected: unknown): void {
  if (isDeepStrictEqual(actual, expected)) return;
  expect(actual, `seed ${SEED}`).toEqual(expected);
}

function damage(encoded: Buffer): Buffer {
  const damaged = Buffer.from(encoded);
  for (const _ of many(3, () => 0)) {
    if (damaged.length > 0) damaged[below(damaged.length)] = below(256);
  }
  return below(2) === 0 ? damaged : damaged.subarray(0, below(damaged.length + 1));
}

/** The bytes as part of a larger buffer, which is filled with `filling`. */
function inside(raw: Buffer, filling: number): Buffer {
  const larger = Buffer.alloc(raw.length + 64, filling);
  raw.copy(larger, 32);
  return larger.subarray(32, 32 + raw.length);
}

function outcome(codec: AnyCodec, raw: Buffer): unknown {
  try {
    return { value: codec.decode(raw) };
  } catch (error) {
    // The codecs' own errors are SyntaxErrors.
    if (!(error instanceof SyntaxError)) expect(error, `seed ${SEED}`).toBeInstanceOf(SyntaxError);
    return { error: (error as Error).message };
  }
}
