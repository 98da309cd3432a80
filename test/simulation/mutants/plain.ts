import type { Mutant } from "./mutant.ts";

/** Slips in what every queue does: offering, business keys, transferring, taking, pausing. */
export const PLAIN: readonly Mutant[] = [
  {
    name: "no-publish",
    breaks: "An offer of a new head wakes nobody: the message is moved half a minute late.",
    worlds: ["plain"],
    tests: [
      "moves/delayed/offer.test.ts",
      "integration/delayed/offer.test.ts",
      "integration/delayed/transfer.test.ts",
    ],
    edits: [
      {
        file: "lua/delayed/offer.ts",
        find: `elseif rank == 0 then refusal = rare().wakeUp(deadlines[first]) end`,
        replace: `end`,
      },
    ],
  },
  {
    name: "own-clock",
    breaks:
      "A producer computes the deadline by its own clock: a message is moved before its delay has passed on the server's.",
    worlds: ["plain"],
    tests: ["integration/delayed/offer.test.ts", "fault/wrong-clocks.long.test.ts"],
    edits: [
      {
        file: "queue/offering.ts",
        find: `return "delay" in due ? due.delay : "";`,
        replace: `return "";`,
      },
      {
        file: "queue/offering.ts",
        find: `return "delay" in due ? "" : due.deadline;`,
        replace: `return "delay" in due ? Math.ceil(Date.now() + due.delay.rest) : due.deadline;`,
      },
    ],
  },
  {
    name: "deadline-rounded-down",
    breaks: "A deadline is rounded down: a message is moved before it is due.",
    worlds: ["plain", "reliable"],
    tests: [
      "moves/delayed/deadlines.test.ts",
      "moves/delayed/offer.test.ts",
      "moves/delayed/clock.test.ts",
    ],
    edits: [
      {
        file: "lua/fragments/deadline.ts",
        find: `math.floor(now + delay) or math.ceil(now + delay)`,
        replace: `math.floor(now + delay) or math.floor(now + delay)`,
      },
    ],
  },
  {
    name: "timer-from-own-clock",
    breaks:
      "The timer is armed by the process's clock: where the server's is ahead, messages are late.",
    worlds: ["plain"],
    tests: [
      "integration/delayed/transfer.test.ts",
      "fault/wrong-clocks.long.test.ts",
      "fault/clock-step.test.ts",
    ],
    edits: [
      {
        file: "delayed/transfer/transfer-task.ts",
        find: `const remaining = this.#queue.clock.remaining(this.#awaited);`,
        replace: `const remaining = this.#awaited - Date.now();`,
      },
    ],
  },
  {
    name: "heard-and-forgotten",
    breaks: "A wake-up that comes during a transfer is lost: the message waits for the next sweep.",
    worlds: ["plain"],
    tests: ["integration/delayed/transfer.test.ts", "integration/delayed/offer.test.ts"],
    edits: [
      {
        file: "delayed/transfer/transfer-task.ts",
        find: `const deadline = Math.min(next, this.#heard);`,
        replace: `const deadline = next;`,
      },
    ],
  },
  {
    name: "one-sweep",
    breaks: "Only the first sweep comes: a message whose wake-up was lost later on is never moved.",
    worlds: ["plain"],
    tests: [
      "unit/delayed/sweep-rhythm.test.ts",
      "integration/delayed/sweep.test.ts",
      "fault/deaf.test.ts",
    ],
    edits: [
      {
        file: "delayed/transfer/sweep-rhythm.ts",
        find: `        this.#arm();
        this.#onTurn();`,
        replace: `        this.#onTurn();`,
      },
    ],
  },
  {
    name: "clock-step-unheard",
    breaks: "A step of the server's clock arms no timer anew: messages are late by the step.",
    worlds: ["plain"],
    tests: ["fault/clock-step.test.ts", "unit/time/server-clock.test.ts"],
    edits: [
      {
        file: "delayed/transfer/transfer-task.ts",
        find: `    this.#await(this.#awaited);
  }`,
        replace: `    if (this.#awaited === Infinity) this.#await(this.#awaited);
  }`,
      },
    ],
  },
  {
    name: "stand-by-sleeps",
    breaks:
      "A task that stands by mistakes the unit of its delay: when the active process dies, messages are late by minutes.",
    worlds: ["plain"],
    tests: [
      "integration/delayed/duty.test.ts",
      "fault/stand-by.long.test.ts",
      "integration/delayed/transfer.test.ts",
    ],
    edits: [
      {
        file: "delayed/transfer/stand-by.ts",
        find: `return this.#isOn ? MIN_DELAY * (1 + Math.random()) : 0;`,
        replace: `return this.#isOn ? MIN_DELAY * (1 + Math.random()) * 1000 : 0;`,
      },
    ],
  },
  {
    name: "stand-by-is-blind",
    breaks:
      "A task that stands by does not see what is overdue, so nobody takes over from a dead active task.",
    worlds: ["plain"],
    tests: [
      "integration/delayed/stand-by.test.ts",
      "integration/delayed/duty.test.ts",
      "fault/stand-by.long.test.ts",
    ],
    edits: [
      {
        file: "delayed/transfer/stand-by.ts",
        find: `return hasListed || next <= clock.now() - this.grace ? undefined : next;`,
        replace: `return hasListed ? undefined : next;`,
      },
    ],
  },
  {
    name: "removed-before-pushed",
    breaks: "A transfer removes before it pushes: messages are lost where Redis refuses the push.",
    worlds: ["plain"],
    tests: [
      "moves/delayed/transfer.test.ts",
      "moves/refused/refused.long.test.ts",
      "fault/acl.test.ts",
    ],
    edits: [
      {
        file: "lua/delayed/transfer.ts",
        find: `if #messages > 0 then moved, refusal = (isStream and rare().appendAll or pushAll)(messages) end
if moved > 0 then redis.call("ZREMRANGEBYRANK", timeouts, 0, moved - 1) end
if refusal then
  -- If anything has moved, the reply has to say so. The next run returns the refusal.
  if moved`,
        replace: `if #messages > 0 then redis.call("ZREMRANGEBYRANK", timeouts, 0, #messages - 1) end
if #messages > 0 then moved, refusal = (isStream and rare().appendAll or pushAll)(messages) end
if refusal then
  -- If anything has moved, the reply has to say so. The next run returns the refusal.
  if moved`,
      },
    ],
  },
  {
    name: "offers-overtake",
    breaks:
      "Later offers do not wait for those that Redis refuses with NOSCRIPT: equal delays, and not in the order of the offers.",
    worlds: ["plain"],
    tests: [
      "fault/mixed-offers.test.ts",
      "integration/delayed/offer.test.ts",
      "fault/sent-again.test.ts",
    ],
    edits: [
      {
        file: "delayed/offering/offer-batch.ts",
        find: `for (const batch of this.#queue.server.offers) batch.closeGate();`,
        replace: `for (const batch of this.#queue.server.offers) if (batch !== this) batch.closeGate();`,
      },
    ],
  },
  {
    name: "part-reported-as-done",
    breaks:
      "offerMany resolves though a part of it failed: a message that was said to be in Redis is not.",
    worlds: ["partitions", "plain"],
    tests: [
      "integration/delayed/offer.test.ts",
      "fault/refusals.long.test.ts",
      "fault/call-timeout.long.test.ts",
    ],
    edits: [
      {
        file: "queue/offering.ts",
        find: `if (!results.some((result) => result instanceof OfferError)) return results as OfferResult[];`,
        replace: `if (!results.every((result) => result instanceof OfferError)) return results as OfferResult[];`,
      },
    ],
  },
  {
    name: "exchange-leaves-the-old-one",
    breaks:
      "A cancellation with an offer puts the new message there, and leaves the old one: it is delivered, though cancelled.",
    worlds: ["keys"],
    tests: ["moves/exchanges/exchange.test.ts", "integration/exchanges/stages.test.ts"],
    edits: [
      {
        file: "lua/exchanges/exchange.ts",
        find: `  leave(place, names, elementsAre)`,
        replace: `  if place ~= "delayed" then leave(place, names, elementsAre) end`,
      },
    ],
  },
  {
    name: "look-then-cancel",
    breaks:
      "cancel looks for the message, and then removes it: true for a message that was moved in between, and is delivered.",
    worlds: ["plain", "keys"],
    tests: [
      "moves/delayed/remove.test.ts",
      "integration/delayed/delayed-queue.test.ts",
      "fault/cancel-race.long.test.ts",
    ],
    edits: [
      {
        file: "delayed/delayed-messages.ts",
        find: `import { remove } from "../lua/delayed/remove.ts";`,
        replace: `import { remove } from "../lua/delayed/remove.ts";
import { get } from "../lua/delayed/get.ts";`,
      },
      {
        file: "delayed/delayed-messages.ts",
        find: `    const flags = await this.#queue.change("cancel in", remove, {}, { rows, knownFact });`,
        replace: `    const looked = rows.map(async (row) => {
      const one = { rows: [row], knownFact };
      return (await this.#queue.read("look into", get, { maxBytes: 1 }, one)).messages.length > 0;
    });
    const flags = await Promise.all(looked);
    await this.#queue.change("cancel in", remove, {}, { rows, knownFact });`,
      },
    ],
  },
  {
    name: "cancel-sent-again",
    breaks:
      "cancel goes over the connection that sends again: after a lost reply, false for a message that it has removed.",
    worlds: ["plain", "keys"],
    tests: [
      "fault/lost-replies.test.ts",
      "integration/delayed/exact-again.test.ts",
      "fault/cancel-race.long.test.ts",
    ],
    edits: [
      {
        file: "delayed/delayed-messages.ts",
        find: `await this.#queue.change("cancel in", remove, {}, { rows, knownFact });`,
        replace: `await this.#queue.read("cancel in", remove, {}, { rows, knownFact });`,
      },
    ],
  },
  {
    name: "cancelled-twice",
    breaks: "Two cancels of one turn of the event loop both return true for one message.",
    worlds: ["plain", "keys"],
    tests: [
      "moves/delayed/remove.test.ts",
      "integration/delayed/delayed-queue.test.ts",
      "integration/delayed/keys.test.ts",
    ],
    edits: [
      {
        file: "lua/delayed/remove.ts",
        find: `flags[#flags + 1] = isFirst and 1 or 0`,
        replace: `flags[#flags + 1] = place and 1 or 0`,
      },
    ],
  },
  {
    name: "rescheduled-in-silence",
    breaks:
      "A message that is rescheduled to the head wakes nobody: it is moved half a minute late.",
    worlds: ["plain"],
    tests: ["moves/delayed/reschedule.test.ts", "integration/delayed/delayed-queue.test.ts"],
    edits: [
      {
        file: "lua/delayed/reschedule.ts",
        find: `wrote(nil, wakeUp(deadline))`,
        replace: `try("EXISTS", timeouts)`,
      },
    ],
  },
  {
    name: "replaced-by-the-old-deadline",
    breaks: "replace keeps the old deadline: the new message is moved before its delay has passed.",
    worlds: ["keys", "plain"],
    tests: ["moves/delayed/offer-keyed.test.ts", "integration/delayed/keys.test.ts"],
    edits: [
      {
        file: "lua/delayed/offer-keyed.ts",
        find: `      deadline = dueBy(deadline, delay, cap)`,
        replace: `      deadline = old and old.deadline or dueBy(deadline, delay, cap)`,
      },
    ],
  },
  {
    name: "replaced-and-kept",
    breaks: "A replaced message stays delayed, and is delivered.",
    worlds: ["keys", "plain"],
    tests: ["moves/delayed/offer-keyed.test.ts", "integration/delayed/keys.test.ts"],
    edits: [
      {
        file: "lua/delayed/offer-keyed.ts",
        find: `then rare().leave(place, leaves[place], elementsAre) end`,
        replace: `then redis.call("EXISTS", timeouts) end`,
      },
    ],
  },
  {
    name: "no-give-back",
    breaks:
      "A message that arrives when nobody waits any more is not given back: aborting a take loses it.",
    worlds: ["plain"],
    tests: [
      "unit/ready/taker.test.ts",
      "integration/ready/blocking-queue.test.ts",
      "fault/aborts.long.test.ts",
    ],
    edits: [
      {
        file: "ready/taker.ts",
        find: `giveBack: (messages) => this.#giveBack.putBack(messages),`,
        replace: `giveBack: () => Promise.resolve(),`,
      },
    ],
  },
  {
    name: "no-receipt",
    breaks: "A give-back that is sent again after a lost reply puts the messages back twice.",
    worlds: ["plain"],
    tests: [
      "moves/ready/give-back.test.ts",
      "unit/ready/give-back.test.ts",
      "fault/lost-replies.test.ts",
    ],
    edits: [
      {
        file: "lua/ready/ready.ts",
        find: `if redis.call("ZSCORE", receipts, receipt) then return 0 end`,
        replace: `redis.call("ZSCORE", receipts, receipt)`,
      },
    ],
  },
  {
    name: "close-before-give-back",
    breaks:
      "close() does not wait for messages on their way back: where it ends the connection first, they are lost.",
    worlds: ["plain"],
    tests: [
      "unit/ready/taker.test.ts",
      "integration/ready/closing.test.ts",
      "fault/close.long.test.ts",
    ],
    edits: [
      {
        file: "ready/taker.ts",
        find: `    await this.#loop.close();
    await this.#giveBack.done();`,
        replace: `    void this.#loop.close();`,
      },
    ],
  },
  {
    name: "late-reply-dropped",
    breaks: "What the reply of an aborted poll holds is dropped: aborting it loses the message.",
    worlds: ["plain"],
    tests: [
      "integration/ready/blocking-queue.test.ts",
      "fault/aborts.long.test.ts",
      "fault/call-timeout.long.test.ts",
    ],
    edits: [
      {
        file: "redis/call.ts",
        find: `if (wait.isOver && wait.isSent) onLate(reply as Reply);`,
        replace: `if (wait.isOver && !wait.isSent) onLate(reply as Reply);`,
      },
    ],
  },
  {
    name: "pause-asked-once",
    breaks:
      "A process learns whether the queue is paused once: it goes on taking and moving when that changes.",
    worlds: ["pauses"],
    tests: ["integration/queue/pause.test.ts", "integration/delayed/sweep.test.ts"],
    edits: [
      {
        file: "delayed/transfer/transfer-task.ts",
        find: `if (reply.isPaused !== undefined) this.#pauses.note(reply.isPaused);`,
        replace: `if (this.#pauses.isPaused === undefined) this.#pauses.note(reply.isPaused ?? false);`,
      },
    ],
  },
  {
    name: "poll-ignores-pause",
    breaks: "poll takes messages of a paused queue.",
    worlds: ["pauses"],
    tests: ["integration/queue/pause.test.ts", "integration/ready/blocking-queue.test.ts"],
    edits: [
      {
        file: "ready/ready-list.ts",
        find: `return pauses.isPaused ? [] : await redis.lpopBuffer(ready, max);`,
        replace: `return await redis.lpopBuffer(ready, max);`,
      },
    ],
  },
  {
    name: "resumed-in-silence",
    breaks:
      "Only pausing is announced: after a resume the other processes rest for half a minute more.",
    worlds: ["pauses"],
    tests: ["moves/queue/set-paused.test.ts", "integration/queue/pause.test.ts"],
    edits: [
      {
        file: "lua/queue/set-paused.ts",
        find: `local refusal = wakeUp(0)`,
        replace: `local refusal = isPaused == "1" and wakeUp(0)`,
      },
    ],
  },
  {
    name: "only-replies-are-life",
    breaks:
      "Only a complete reply is a sign of life: a slow link is cut while a reply comes, and a plain queue loses it.",
    worlds: ["plain"],
    tests: ["unit/redis/progress.test.ts", "fault/slow-link.long.test.ts"],
    unseen:
      "Not found in two minutes. The reply that carries a message is short: it takes seconds only at the slowest rates.",
    edits: [
      {
        file: "redis/progress.ts",
        find: `this.#note(read - this.#read + drained, now);`,
        replace: `this.#note(drained, now);`,
      },
    ],
  },
];
