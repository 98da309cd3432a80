import type { Mutant } from "./mutant.ts";

const TESTS = ["moves/delayed/paced.test.ts", "moves/queue/flow.test.ts"];

const LANES = ["moves/delayed/in-turns.test.ts", "moves/delayed/in-turns-model.long.test.ts"];

const HANDS = ["moves/delayed/in-hand.test.ts"];

/** Slips in the rate of a queue, and in its lanes. */
export const FLOW: readonly Mutant[] = [
  {
    name: "rate-unused",
    breaks:
      "What moves uses nothing of the rate up: all that is due becomes ready, a burst at a time.",
    worlds: ["flow"],
    tests: TESTS,
    edits: [
      {
        file: "lua/delayed/paced.ts",
        find: `if pace and (count > 0 or pace.wasTurned) and useUp(count) then`,
        replace: `if pace and pace.wasTurned and useUp(0) then`,
      },
      {
        file: "lua/delayed/paced.ts",
        find: `if moved < count then useUp(moved) end`,
        replace: ``,
      },
    ],
  },
  {
    name: "rate-of-the-past",
    breaks: "Another rate begins with all of its burst: setting one again and again exceeds it.",
    worlds: ["flow"],
    tests: TESTS,
    edits: [
      {
        file: "lua/queue/flow.ts",
        find: `now + math.min(used, burst) * step)`,
        replace: `now)`,
      },
    ],
  },
  {
    name: "rate-by-a-turned-clock",
    breaks: "Where the server's clock is set back, nothing becomes ready until it is where it was.",
    worlds: ["flow"],
    tests: TESTS,
    unseen: "The clocks of the world go forward again before it ends.",
    edits: [
      {
        file: "lua/places/pace.ts",
        find: `math.min(stored, now + burst * step)`,
        replace: `stored`,
      },
    ],
  },
  {
    name: "retries-beside-the-rate",
    breaks: "A turn is taken by messages and by retries: together they exceed the rate.",
    worlds: ["flow"],
    tests: TESTS,
    edits: [
      {
        file: "lua/places/pace.ts",
        find: `  for zset, count in pairs(counts) do`,
        replace: `  for zset, _ in pairs(counts) do\n    local count = #due[zset][1]`,
      },
    ],
  },
  {
    name: "lane-rate-unused",
    breaks: "What a lane has used of its rate is not noted: all of the burst may go at every look.",
    worlds: ["flow"],
    tests: LANES,
    edits: [
      {
        file: "lua/places/turns.ts",
        find: `  if #paces > 0 then`,
        replace: `  if false then`,
      },
    ],
  },
  {
    name: "lane-rests-for-ever",
    breaks: "A lane whose rate is used up never comes back: its messages wait for ever.",
    worlds: ["flow"],
    tests: LANES,
    edits: [
      {
        file: "lua/places/turns.ts",
        find: `  if #back > 0 then redis.call("ZADD", lanes, "XX", unpack(back)) end`,
        replace: ``,
      },
    ],
  },
  {
    name: "lane-hidden-by-others",
    breaks:
      "Lanes without tokens, as many as it looks at, hide one that may go: it waits for their rest.",
    worlds: ["flow"],
    tests: LANES,
    unseen: "No rule of the world says when a message may go.",
    edits: [
      {
        file: "lua/delayed/in-turns.ts",
        find: ` or not isAll and #all == most`,
        replace: ``,
      },
    ],
  },
  {
    name: "turn-without-message-counts",
    breaks:
      "The turn of a message that was dropped, or of a retry that was cancelled, takes a token of its lane: the next one waits for its rate.",
    worlds: ["flow"],
    tests: LANES,
    unseen: "No rule of the world says when a message may go.",
    edits: [
      {
        file: "lua/delayed/in-turns.ts",
        find: `    else
      gone[#gone + 1] = one
    end`,
        replace: `    else
      gone[#gone + 1], one.lane.moved = one, one.lane.moved + 1
    end`,
      },
    ],
  },
  {
    name: "lanes-for-ever",
    breaks: "A queue whose flow was cleared while messages waited keeps its lanes.",
    worlds: ["flow"],
    tests: LANES,
    edits: [
      {
        file: "lua/delayed/in-turns.ts",
        find: `  elseif found[8] then
    redis.call("UNLINK", flow, lanePaces)`,
        replace: ``,
      },
    ],
  },
  {
    name: "out-of-the-room-before-the-push",
    breaks:
      "Messages leave the waiting room before they are pushed: if Redis refuses that, they are lost.",
    worlds: ["flow"],
    tests: [...LANES, "moves/refused"],
    edits: [
      {
        file: "lua/delayed/in-turns.ts",
        find: `  if #retrying > 0 then mayDropRetries() end`,
        replace: `  for _, one in ipairs(going) do
    if one.id then redis.call("HDEL", room, one.id) end
  end`,
      },
    ],
  },
  {
    name: "keys-gone-while-some-wait",
    breaks:
      "Messages that wait for their turn do not count as such: clearing the retries frees their keys, and they are in no size.",
    worlds: ["flow"],
    tests: LANES,
    edits: [
      {
        file: "lua/places/due.ts",
        find: `  local count = redis.call("HLEN", room)`,
        replace: `  local count = 0`,
      },
    ],
  },
  {
    name: "lane-makes-up",
    breaks:
      "A lane that comes later begins at 0: it is served alone until it has made up for the time before.",
    worlds: ["flow"],
    tests: LANES,
    unseen: "No rule of the world compares lanes.",
    edits: [
      {
        file: "lua/places/turns.ts",
        find: `virtual, holds = tonumber(found[1] or nil) or 0, found[2]`,
        replace: `virtual, holds = 0, found[2]`,
      },
    ],
  },
  {
    name: "rests-outlive-the-flow",
    breaks:
      "Lanes that rest go on doing so under another flow, which may have no rates: its messages wait.",
    worlds: ["flow"],
    tests: LANES,
    edits: [
      {
        file: "lua/queue/flow.ts",
        find: `  pcall(endAllRests, function(name)`,
        replace: `  pcall(tostring, function(name)`,
      },
    ],
  },
  {
    name: "lane-slots-unused",
    breaks: "Nobody asks what a lane has in hand: all that its rate lets through becomes ready.",
    worlds: ["flow"],
    tests: HANDS,
    edits: [
      {
        file: "lua/places/turns.ts",
        find: `if settings.slots and one.slots > 0 then`,
        replace: `if false then`,
      },
    ],
  },
  {
    name: "queue-slots-unused",
    breaks: "Nobody asks what the queue has in hand: only its lanes are limited.",
    worlds: ["flow"],
    tests: HANDS,
    edits: [
      {
        file: "lua/delayed/in-turns.ts",
        find: `  if inHand then space =`,
        replace: `  if false then space =`,
      },
    ],
  },
  {
    name: "hold-ends-with-the-flow",
    breaks:
      "Another flow ends what was told of a lane: it goes on while its partner still says no.",
    worlds: ["flow"],
    tests: HANDS,
    edits: [
      {
        file: "lua/queue/flow.ts",
        find: `    return hold and hold > now / 1000 and hold`,
        replace: `    return nil`,
      },
    ],
  },
];
