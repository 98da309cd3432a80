import { Command } from "ioredis";
import { describe, expect, test } from "vitest";
import { otherNameOf, queueKeys } from "../../../src/queue/keys.ts";

/** The Cluster slot of a key, as ioredis computes it. */
const slotOf = (key: string) => new Command("get", [key]).getSlot();

/** The slots of all keys of a queue. */
const slotsOf = (name: string) => Object.values(queueKeys(name)).map(slotOf);

function isAccepted(name: string): boolean {
  try {
    queueKeys(name);
    return true;
  } catch {
    return false;
  }
}

test("a queue's keys are Redisson's and Delayline's", () => {
  expect(queueKeys("orders")).toEqual({
    timeouts: "redisson_delay_queue_timeout:{orders}",
    order: "redisson_delay_queue:{orders}",
    ready: "orders",
    channel: "redisson_delay_queue_channel:{orders}",
    compacted: "delayline_compacted:{orders}",
    businessKeys: "delayline_keys:{orders}",
    listed: "delayline_listed:{orders}",
    mover: "delayline_mover:{orders}",
    paused: "delayline_paused:{orders}",
    flow: "delayline_flow:{orders}",
    room: "delayline_room:{orders}",
    turns: "delayline_turns:{orders}",
    lanes: "delayline_lanes:{orders}",
    resting: "delayline_resting:{orders}",
    lanePaces: "delayline_pace:{orders}",
    hands: "delayline_hands:{orders}",
    schedules: "delayline_schedules:{orders}",
    planning: "delayline_planning:{orders}",
    running: "delayline_running:{orders}",
    once: "delayline_once:{orders}",
    onceEnds: "delayline_once_ends:{orders}",
    unreadable: "delayline_unreadable:{orders}",
    quarantine: "delayline_quarantine:{orders}",
    receipts: "delayline_receipts:{orders}",
    stream: "delayline_stream:{orders}",
    knownGroups: "delayline_groups:{orders}",
    returned: "delayline_returned:{orders}",
    retries: "delayline_retries:{orders}",
    retrying: "delayline_retrying:{orders}",
    dead: "delayline_dead:{orders}",
    dropped: "delayline_dropped:{orders}",
    activity: "delayline_activity:{orders}",
    revoked: "delayline_revoked:{orders}",
    notices: "delayline_notices:{orders}",
    handled: "delayline_handled:{orders}",
    history: "delayline_history:{orders}",
    partitions: "delayline_partitions:{orders}",
    journal: "delayline_journal:{orders}",
    arrivals: "delayline_arrivals:{orders}",
    holder: "delayline_holder:{orders}",
    members: "delayline_members:{orders}",
  });
});

test("a name that holds a hash tag is used as it is, without new braces", () => {
  expect(queueKeys("eu:{shop}:orders")).toMatchObject({
    timeouts: "redisson_delay_queue_timeout:eu:{shop}:orders",
    order: "redisson_delay_queue:eu:{shop}:orders",
    ready: "eu:{shop}:orders",
    channel: "redisson_delay_queue_channel:eu:{shop}:orders",
  });
});

describe("all keys of a legal name live in one Cluster slot", () => {
  test.each([
    "orders",
    "a",
    " ",
    "with space",
    "über:日本語:🎉",
    "line\nbreak\0zero",
    "delayline_quarantine",
    "{orders}",
    "{a}b",
    "a{b}",
    "a{b}c}d",
    "{a}{b}",
    "{a}{}",
    "{{a}",
    "{a}}",
    "a{b}{",
    "}{a}",
    "a}b{c}",
    "x".repeat(10_000),
  ])("%j", (name) => {
    expect(new Set(slotsOf(name))).toEqual(new Set([slotOf(name)]));
  });

  test("the same holds for every legal name of up to four braces and letters", () => {
    const letters = ["a", "b", "{", "}"];
    let names = [""];
    let accepted = 0;
    for (let length = 1; length <= 4; length++) {
      names = names.flatMap((name) => letters.map((letter) => name + letter));
      for (const name of names.filter(isAccepted)) {
        accepted++;
        expect(new Set(slotsOf(name)).size, name).toBe(1);
      }
    }
    // 30 without braces, and those that hold {a}, {{a} and the like.
    expect(accepted).toBeGreaterThan(30);
    expect(accepted).toBeLessThan(4 + 16 + 64 + 256);
  });
});

test.each(["a}b", "a{b", "{}q", "a{}b", "{", "}", "}{", "{}", "}a{", "{}{a}"])(
  "%j, whose keys would land in different slots, is refused and quoted",
  (name) => {
    expect(() => queueKeys(name)).toThrow(
      new TypeError(
        `queue name must have no braces or a whole non-empty {tag}, or its keys land in different Cluster slots; got ${JSON.stringify(name)}`,
      ),
    );
  },
);

describe("a name that could be a key of a queue is refused", () => {
  const { ready, ...keysOfOrders } = queueKeys("orders");
  test.each([
    ...Object.values(keysOfOrders),
    ...Object.values(keysOfOrders).map((key) => key.replace("{orders}", "eu:{shop}:orders")),
    // Future keys begin like this, too.
    "redisson_delay_queue_of-tomorrow:{orders}",
    "delayline_of tomorrow:{orders}",
    "delayline_keys:orders",
    "delayline_:",
  ])("%s", (name) => {
    expect(() => queueKeys(name)).toThrow(
      new TypeError(
        `queue name must not begin as the keys of queues do (${name.slice(0, name.indexOf(":") + 1)}), or it could be the key of another queue; got ${JSON.stringify(name)}`,
      ),
    );
  });

  test.each([
    ready,
    "delayline",
    "delayline:orders",
    "delayline-orders:eu",
    "delayline_orders",
    "delayline_{orders}",
    "my_delayline_x:y",
    "eu:delayline_keys:{orders}",
    " delayline_keys:{orders}",
    "Delayline_keys:{orders}",
    "redisson_delay_queue",
    "redisson_delay_queue_{orders}",
    "redisson:orders",
    "redisson_lock:{orders}",
  ])("but not %s", (name) => {
    expect(queueKeys(name).ready).toBe(name);
  });
});

test("an empty name is refused", () => {
  expect(() => queueKeys("")).toThrow(new TypeError("queue name must not be empty"));
});

test.each([
  [undefined, "undefined"],
  [null, "object"],
  [7, "number"],
  [Symbol("orders"), "symbol"],
  [["orders"], "object"],
  [Buffer.from("orders"), "object"],
  [Object("orders"), "object"],
])("a name that is not a string is refused: %s", (name, type) => {
  expect(() => queueKeys(name as never)).toThrow(
    new TypeError(`queue name must be a string, got ${type}`),
  );
});

test.each(["\ud800", "a\udc00b", "\udc00\ud800"])(
  "a lone surrogate has no UTF-8 form and is refused: %j",
  (name) => {
    expect(() => queueKeys(name)).toThrow(
      new TypeError(`queue name must be well-formed Unicode, got ${JSON.stringify(name)}`),
    );
  },
);

test("a name and the same name in braces share all keys but that of ready messages", () => {
  for (const [name, other] of [
    ["orders", "{orders}"],
    ["{orders}", "orders"],
  ] as const) {
    expect(otherNameOf(name)).toBe(other);
    const { ready, ...shared } = queueKeys(name);
    expect(queueKeys(other)).toEqual({ ...shared, ready: other });
    expect(ready).toBe(name);
  }
  for (const name of ["{orders}:new", "new:{orders}", "{a}{b}"]) {
    expect(otherNameOf(name)).toBeUndefined();
  }
});
