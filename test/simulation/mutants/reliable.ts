import type { Mutant } from "./mutant.ts";

/** Slips in what only reliable queues do: deliveries, leases, retries, dead letters, and the way back to a plain queue. */
export const RELIABLE: readonly Mutant[] = [
  {
    name: "ack-before-handler",
    breaks:
      "A delivery is acknowledged before its handler has ended: it is lost if that fails or its process dies.",
    worlds: ["reliable"],
    tests: ["integration/reliable/consuming.test.ts", "integration/reliable/retrying.test.ts"],
    edits: [
      {
        file: "reliable/consuming/handling.ts",
        find: `  for (const { held } of delivered) held.isGiven = true;`,
        replace: `  for (const { held } of delivered) held.isGiven = true;
  void each(delivered, (held) => settler.finish(held));`,
      },
    ],
  },
  {
    name: "surplus-kept",
    breaks:
      "What a read returned for nobody is not given back: the message waits in a process that does not want it.",
    worlds: ["reliable"],
    tests: ["fault/reliable/aborts.test.ts", "integration/reliable/consuming.test.ts"],
    edits: [
      {
        file: "reliable/group/reader.ts",
        find: `giveBack: (left) => Promise.all(left.map((held) => host.release(held))),`,
        replace: `giveBack: () => Promise.resolve(),`,
      },
    ],
  },
  {
    name: "lease-not-renewed",
    breaks:
      "A beat renews no lease: a message whose handler is slow is delivered to another process meanwhile.",
    worlds: ["reliable"],
    tests: [
      "moves/reliable/beat.test.ts",
      "integration/reliable/delivery.test.ts",
      "integration/reliable/dying.test.ts",
    ],
    edits: [
      {
        file: "lua/reliable/consumers.ts",
        find: `  if redis.call("XCLAIM", stream, group, consumer, 0, row[1], "IDLE", row[3], "JUSTID")[1] then break end`,
        replace: `  if row[1] then break end`,
      },
    ],
  },
  {
    name: "one-look",
    breaks:
      "One look declares a consumer dead: a step of the server's clock takes the messages of those that live.",
    worlds: ["reliable"],
    tests: ["unit/reliable/reclaim-watch.test.ts", "integration/reliable/dying.test.ts"],
    edits: [
      {
        file: "reliable/group/reclaim-watch.ts",
        find: `const remaining = Math.max(timeout - idle, first.at + half - now);`,
        replace: `const remaining = timeout - idle;`,
      },
    ],
  },
  {
    name: "stranger-at-once",
    breaks:
      "An entry whose reply is still on its way is given back at the first beat: it is delivered twice.",
    worlds: ["reliable"],
    tests: [
      "fault/reliable/slow-reads.test.ts",
      "integration/reliable/dying.test.ts",
      "fault/reliable/outages.long.test.ts",
    ],
    edits: [
      {
        file: "reliable/group/lease-keeper.ts",
        find: `(this.#firstSeen.get(id) ?? Infinity) < readingSince`,
        replace: `(this.#firstSeen.get(id) ?? -Infinity) < readingSince`,
      },
    ],
  },
  {
    name: "ack-of-lost-succeeds",
    breaks: "ack returns true though the lease was lost: the message is handled again after that.",
    worlds: ["reliable"],
    tests: ["moves/reliable/ack.test.ts", "integration/reliable/delivery.test.ts"],
    edits: [
      {
        file: "lua/reliable/deliveries.ts",
        find: `      reply[#reply + 1] = i
    end`,
        replace: `    end`,
      },
    ],
  },
  {
    name: "extend-of-lost-succeeds",
    breaks:
      "extend returns true though the lease was lost: two processes believe that they have the message.",
    worlds: ["reliable"],
    tests: ["moves/reliable/extend.test.ts", "integration/reliable/delivery.test.ts"],
    edits: [
      {
        file: "lua/reliable/deliveries.ts",
        find: `extended[i] = claimed and claimed[1] and 1 or 0`,
        replace: `extended[i] = claimed and not claimed[1] and 0 or 1`,
      },
    ],
  },
  {
    name: "ladder-one-step-behind",
    breaks:
      "The second failure waits for the first pause of the ladder: the message is delivered too early.",
    worlds: ["reliable"],
    tests: ["unit/reliable/retry-ladder.test.ts", "integration/reliable/retrying.test.ts"],
    edits: [
      {
        file: "reliable/consuming/retry-ladder.ts",
        find: `pauses[attempt - 1] ?? pauses.at(-1)`,
        replace: `pauses[Math.max(0, attempt - 2)] ?? pauses.at(-1)`,
      },
    ],
  },
  {
    name: "pause-of-the-first",
    breaks:
      "Failures that share a script share the pause of the first: some messages are delivered too early.",
    worlds: ["reliable"],
    tests: ["moves/reliable/retry-later.test.ts", "integration/reliable/retrying.test.ts"],
    edits: [
      {
        file: "lua/reliable/deliveries.ts",
        find: `deadlineAfter(now / 1000, delays[i]), isKeyless)`,
        replace: `deadlineAfter(now / 1000, delays[1]), isKeyless)`,
      },
    ],
  },
  {
    name: "one-delivery-more",
    breaks: "A message dies after one delivery more than maxAttempts.",
    worlds: ["reliable"],
    tests: [
      "unit/reliable/held.test.ts",
      "integration/reliable/failures.test.ts",
      "integration/reliable/dead-letters.test.ts",
    ],
    edits: [
      {
        file: "reliable/group/held.ts",
        find: `return this.attempt >= this.group.settings.maxAttempts;`,
        replace: `return this.attempt > this.group.settings.maxAttempts;`,
      },
    ],
  },
  {
    name: "lost-begun",
    breaks:
      "A process that wakes after its lease begins what it had read: another process has it by then.",
    worlds: ["reliable"],
    tests: ["fault/reliable/woken.long.test.ts"],
    edits: [
      {
        file: "reliable/group/held.ts",
        find: `return !this.isHeld || (this.lease === undefined && this.group.mayBeLost(this));`,
        replace: `return this.group === undefined;`,
      },
    ],
  },
  {
    name: "gap-forgotten",
    breaks:
      "The first beat after a gap makes everything look held: a message is begun that another process has.",
    worlds: ["reliable"],
    tests: ["fault/reliable/woken.long.test.ts"],
    edits: [
      {
        file: "reliable/group/lease-keeper.ts",
        find: `if (queueTime.now() >= this.leasesEndAt) this.#keptSince = sentAt;`,
        replace: ``,
      },
    ],
  },
  {
    name: "late-beat",
    breaks:
      "A lease lasts from when the reply to a beat came: the process believes in it when another one has the message.",
    worlds: ["reliable"],
    tests: ["fault/reliable/slow-beats.test.ts"],
    edits: [
      {
        file: "reliable/group/lease-keeper.ts",
        find: `this.#renewAll(sentAt);`,
        replace: `this.#renewAll(queueTime.now());`,
      },
    ],
  },
  {
    name: "death-not-counted",
    breaks: "The death of a consumer does not count as an attempt: attempt is no longer exact.",
    worlds: ["reliable"],
    tests: ["moves/reliable/reclaim.test.ts", "integration/reliable/dying.test.ts"],
    edits: [
      {
        file: "lua/reliable/reclaim.ts",
        find: `if not isAttempted then return giveBack() end`,
        replace: `if deliveries[i] <= 1 then return giveBack() end`,
      },
    ],
  },
  {
    name: "dead-letter-dropped",
    breaks:
      "A message whose consumer dies in its last delivery becomes no dead letter: it is lost.",
    worlds: ["reliable"],
    tests: ["moves/reliable/reclaim.test.ts", "integration/reliable/dying.test.ts"],
    edits: [
      {
        file: "lua/reliable/reclaim.ts",
        find: `    return rare().appendDead(entry, group, reason)`,
        replace: `    return false`,
      },
    ],
  },
  {
    name: "redriven-and-kept",
    breaks:
      "A letter that is redriven stays a dead letter: the next redrive delivers its message again.",
    worlds: ["reliable"],
    tests: ["moves/reliable/dead-letters.test.ts", "integration/reliable/dead-letters.test.ts"],
    edits: [
      {
        file: "lua/reliable/dead-letters.ts",
        find: `      if type(done) == "table" then return done end
      redis.call("XDEL", dead, one[2])`,
        replace: `      if type(done) == "table" then return done end`,
      },
    ],
  },
  {
    name: "group-begins-at-the-end",
    breaks: `A group with start "0" begins at the end of the stream: it never gets what was ready before.`,
    worlds: ["groups"],
    tests: ["unit/reliable/reliable-options.test.ts", "integration/reliable/groups.test.ts"],
    edits: [
      {
        file: "handles/reliable-options.ts",
        find: `if (start === "0") return "0";`,
        replace: `if (start === "0") return "$";`,
      },
    ],
  },
  {
    name: "first-finisher-deletes",
    breaks:
      "The first group that finishes an entry deletes it: a group that has not been given it never gets it.",
    worlds: ["reliable"],
    tests: ["moves/reliable/ack.test.ts", "integration/reliable/groups.test.ts"],
    edits: [
      {
        file: "lua/places/settle.ts",
        find: `if #groups > 1 then unneeded =`,
        replace: `if #groups > 2 then unneeded =`,
      },
    ],
  },
  {
    name: "trimmed-in-flight",
    breaks:
      "Entries in flight for another handler are deleted with earlier ones: they are lost if that fails.",
    worlds: ["reliable"],
    tests: ["moves/reliable/ack.test.ts"],
    unseen:
      "Three handlers or more seldom end in one turn while others go on: not found in 60 seconds.",
    edits: [
      {
        file: "lua/places/settle.ts",
        find: `local needed = inFlight(group, "-", "+", 1)[1]`,
        replace: `local needed = false`,
      },
    ],
  },
  {
    name: "retry-without-key",
    breaks:
      "A retrying message does not hold its business key: a second offer is added, and cancel by the key is false.",
    worlds: ["reliable", "keys"],
    tests: ["moves/reliable/key-hold.test.ts", "integration/reliable/key-hold.test.ts"],
    edits: [
      {
        file: "lua/places/retry-moves.ts",
        find: `  if key then holdKey(key, entry.a) end
`,
        replace: `  if key == "" then holdKey(key, entry.a) end
`,
      },
    ],
  },
  {
    name: "key-of-the-newer",
    breaks:
      "A retry that becomes ready frees its key though a newer message has it: a second offer is not rejected.",
    worlds: ["reliable", "keys"],
    tests: ["moves/reliable/key-hold.test.ts", "integration/reliable/key-hold.test.ts"],
    edits: [
      {
        file: "lua/places/key-index.ts",
        find: `if pointsTo(entry, idOf(ofKeys[i].a)) and isLast(ofKeys[i].a) then`,
        replace: `if entry and isLast(ofKeys[i].a) then`,
      },
    ],
  },
  {
    name: "plain-forgets-retries",
    breaks: "makePlain leaves a few retries behind: their messages are lost.",
    worlds: ["migration"],
    tests: ["moves/queue/make-plain.test.ts", "integration/reliable/migration.test.ts"],
    edits: [
      {
        file: "lua/queue/make-plain.ts",
        find: `if retryCount > 0 then`,
        replace: `if retryCount > tonumber(limit) then`,
      },
    ],
  },
  {
    name: "plain-while-consumed",
    breaks:
      "makePlain does not ask whether consumers live: what they have in flight is delivered a second time.",
    worlds: ["migration"],
    tests: ["moves/queue/make-plain.test.ts", "integration/reliable/migration.test.ts"],
    edits: [
      {
        file: "lua/queue/make-plain.ts",
        find: `if alive > 0 then return { 0, alive, count, retryCount, 0 } end`,
        replace: `if alive > 1 then return { 0, alive, count, retryCount, 0 } end`,
      },
    ],
  },
  {
    name: "cut-short-batch-kept",
    breaks:
      "What a batch has gathered is not given back when it is cut short: it waits in a process that does not want it.",
    worlds: ["handlers"],
    tests: ["integration/reliable/batches.test.ts", "integration/ready/batches.test.ts"],
    unseen: "A process that closes gives back what it holds, and until then its lease is kept.",
    edits: [
      {
        file: "queue/consuming/batch.ts",
        find: `await source.giveBack(batch);`,
        replace: `await Promise.resolve();`,
      },
    ],
  },
  {
    name: "given-up-and-held",
    breaks: "A handler that is given up frees its slot, and its message stays in flight for ever.",
    worlds: ["handlers"],
    tests: ["integration/reliable/time-limit.test.ts"],
    edits: [
      {
        file: "reliable/consuming/handling.ts",
        find: `        return settleFailed(delivered, error, input, closing, host);
      },`,
        replace: `        return reportUnlessTheirs(delivered, error, input, host);
      },`,
      },
    ],
  },
];
