import { expectTypeOf, test } from "vitest";
import type { BlockingQueue, DelayedQueue, Delayline } from "../../../src/index.ts";
import {
  Kryo5Codec,
  LongCodec,
  type JsonJacksonCodec,
} from "../../../src/adapters/redisson/index.ts";
import type { KryoScalar } from "../../../src/adapters/redisson/index.ts";

// Types only: nothing here runs, the type check is the test.

interface Order {
  readonly id: number;
}

const byCodec = (line: Delayline, mine: JsonJacksonCodec<Order>) => {
  expectTypeOf(line.getDelayedQueue("q", { codec: "bytes" })).toEqualTypeOf<
    DelayedQueue<Uint8Array>
  >();
  expectTypeOf(line.getBlockingQueue("q", { codec: "string" })).toEqualTypeOf<
    BlockingQueue<string>
  >();
  expectTypeOf(line.getDelayedQueue("q", { codec: "json" })).toEqualTypeOf<DelayedQueue>();
  expectTypeOf(line.getDelayedQueue("q")).toEqualTypeOf<DelayedQueue>();
  expectTypeOf(line.getDelayedQueue("q", { codec: mine })).toEqualTypeOf<DelayedQueue<Order>>();
  expectTypeOf(line.getDelayedQueue("q", { codec: new LongCodec() })).toEqualTypeOf<
    DelayedQueue<number | bigint>
  >();
  expectTypeOf(line.getBlockingQueue("q", { codec: new Kryo5Codec() })).toEqualTypeOf<
    BlockingQueue<KryoScalar>
  >();
};

const byType = (line: Delayline) => {
  expectTypeOf(line.getDelayedQueue<Order>("q", { codec: "json" })).toEqualTypeOf<
    DelayedQueue<Order>
  >();
  expectTypeOf(line.getBlockingQueue<Order>("q")).toEqualTypeOf<BlockingQueue<Order>>();
  expectTypeOf(line.getBlockingQueue<"a" | "b">("q", { codec: "string" })).toEqualTypeOf<
    BlockingQueue<"a" | "b">
  >();
};

test("a codec determines the payload type where it can; an explicit type wins", () => {
  for (const check of [byCodec, byType]) expectTypeOf(check).toBeFunction();
});
