import type { Mutant } from "./mutant.ts";

/** Slips in partitions, in changes of their number, and in exclusive consumption. */
export const PARTITIONS: readonly Mutant[] = [
  {
    name: "old-fact-accepted",
    breaks:
      "Redis does not refuse a caller whose fact is old: offers go where nobody looks any more, and cancels miss messages.",
    worlds: ["partitions", "exclusive"],
    tests: ["moves/partitions/fact.test.ts", "integration/partitions/change.test.ts"],
    edits: [
      {
        file: "lua/guarded.ts",
        find: `    if epoch >= known or`,
        replace: `    if epoch <= known and`,
      },
      {
        file: "lua/guarded.ts",
        find: `    redis.call("SET", partitions, knownFact)`,
        replace: `    if epoch <= known then redis.call("SET", partitions, knownFact) end`,
      },
    ],
  },
  {
    name: "written-over-as-it-stands",
    breaks:
      "After Redis went back, a newer stable fact is written over an older one: messages stay in partitions where nobody looks.",
    worlds: ["partitions", "exclusive", "spread"],
    tests: ["moves/partitions/guarded.test.ts", "integration/partitions/went-back.long.test.ts"],
    edits: [
      {
        file: "lua/guarded.ts",
        find: `local mayFollow = known == 1 or`,
        replace: `local mayFollow = known > 0 or`,
      },
    ],
  },
  {
    name: "offered-without-the-fact",
    breaks:
      "An offer does not tell by which fact its partition was chosen: it goes into one that was removed.",
    worlds: ["partitions"],
    tests: ["integration/partitions/change.test.ts", "integration/partitions/api.test.ts"],
    edits: [
      {
        file: "partitions/messages.ts",
        find: `const act: Send<OfferResult> = (part, knownFact) =>
        this.#messagesOf(part).offer({ ...offering, hash, sentAs, knownFact }, call);`,
        replace: `const act: Send<OfferResult> = (part) =>
        this.#messagesOf(part).offer({ ...offering, hash, sentAs }, call);`,
      },
    ],
  },
  {
    name: "dropped-before-pushed",
    breaks:
      "A batch leaves the journal before it has arrived: a crash in between loses its messages.",
    worlds: ["partitions"],
    tests: ["integration/partitions/change.test.ts", "fault/partitions/change.long.test.ts"],
    edits: [
      {
        file: "partitions/routing/migration.ts",
        find: `    const destinations = grouped(rows, ({ to }) => to);
    await Promise.all(`,
        replace: `    const destinations = grouped(rows, ({ to }) => to);
    const from = this.#parts.at(source).queue;
    await from.read("migrate messages from", dropBatch, { number }, { knownFact });
    await Promise.all(`,
      },
    ],
  },
  {
    name: "open-batch-overwritten",
    breaks:
      "A page is taken out though a batch is open: the batch is overwritten, and its messages are lost.",
    worlds: ["partitions"],
    tests: ["moves/partitions/pull-out.test.ts", "integration/partitions/change.test.ts"],
    edits: [
      {
        file: "lua/partitions/pull-out.ts",
        find: `if number > 0 then return { number, batch, 1, cursor } end`,
        replace: `if number > 0 and batch == "" then return { number, batch, 1, cursor } end`,
      },
    ],
  },
  {
    name: "drained-over-the-journal",
    breaks:
      "What is ready is drained though a batch is open: the batch is overwritten, and its messages are lost.",
    worlds: ["partitions", "exclusive"],
    tests: ["moves/partitions/drain-page.test.ts", "integration/partitions/change.test.ts"],
    edits: [
      {
        file: "lua/partitions/drain-page.ts",
        find: `if number > 0 then return { number, batch, 1, countLeft(), 1, after, letter } end`,
        replace: `if number > 0 and batch == "" then return { number, batch, 1, countLeft(), 1, after, letter } end`,
      },
    ],
  },
  {
    name: "arrives-twice",
    breaks:
      "A partition does not note which batches have arrived: one that is sent again arrives twice.",
    worlds: ["partitions"],
    tests: ["moves/partitions/push-in.test.ts", "integration/partitions/change.test.ts"],
    edits: [
      {
        file: "lua/partitions/push-in.ts",
        find: `try("HSET", arrivals, source, number)`,
        replace: `try("EXISTS", arrivals)`,
      },
    ],
  },
  {
    name: "arrives-in-silence",
    breaks: "Messages that arrive in a partition wake nobody: they are moved up to a minute late.",
    worlds: ["partitions"],
    tests: ["moves/partitions/push-in.test.ts", "integration/partitions/change.test.ts"],
    unseen: "Not found in the first 48 seconds, some 60 to 200 runs.",
    edits: [
      {
        file: "lua/partitions/push-in.ts",
        find: `wakeUp(first, earliest)`,
        replace: `wakeUp(first, -math.huge)`,
      },
    ],
  },
  {
    name: "looked-for-without-pulling",
    breaks:
      "During a change, cancel asks the new partition without pulling the message there: false, and it is delivered.",
    worlds: ["partitions"],
    tests: ["integration/partitions/change.test.ts", "fault/partitions/change.long.test.ts"],
    edits: [
      {
        file: "partitions/routing/routing.ts",
        find: `if (idOrKey !== undefined) await this.bring(fact, bucket, idOrKey);`,
        replace: `if (idOrKey !== undefined && this.isLeavingOrdinary) await this.bring(fact, bucket, idOrKey);`,
      },
    ],
  },
  {
    name: "key-looked-for-without-pulling",
    breaks:
      "During a change, an offer with a key does not pull the message that holds it: two messages of one key, both added.",
    worlds: ["partitions"],
    tests: ["integration/partitions/change.test.ts", "integration/partitions/api.test.ts"],
    edits: [
      {
        file: "partitions/routing/routing.ts",
        find: `if (key !== undefined) await this.bring(fact, bucket, key);`,
        replace: `if (key !== undefined && this.isLeavingOrdinary) await this.bring(fact, bucket, key);`,
      },
    ],
  },
  {
    name: "sent-again-at-once",
    breaks:
      "A refused offer is sent to the new partition without a look where an earlier copy is: it is stored twice.",
    worlds: ["partitions"],
    tests: ["fault/partitions/sent-again.long.test.ts"],
    unseen: "Not found in the first 48 seconds, some 60 to 200 runs.",
    edits: [
      {
        file: "partitions/routing/routing.ts",
        find: `if (sentBy.length > 0) await this.#migrateSent(fact, bucket, sending);`,
        replace: `if (sentBy.length > 1) await this.#migrateSent(fact, bucket, sending);`,
      },
    ],
  },
  {
    name: "left-and-not-drained",
    breaks: "What a process gives back as it leaves a removed partition stays there: it is lost.",
    worlds: ["partitions"],
    tests: ["integration/partitions/change.test.ts", "integration/partitions/follows.test.ts"],
    unseen: "Not found in the first 48 seconds, some 60 to 200 runs.",
    edits: [
      {
        file: "partitions/open-queue.ts",
        find: `    await part.leaveGroups();
    await this.#drain(part);`,
        replace: `    await part.leaveGroups();`,
      },
    ],
  },
  {
    name: "removed-still-taken-from",
    breaks:
      "A process goes on taking from partitions that were removed, and gives back to them what nobody drains.",
    worlds: ["partitions"],
    tests: ["integration/partitions/change.test.ts", "integration/partitions/api.test.ts"],
    unseen: "Not found in the first 48 seconds, some 60 to 200 runs.",
    edits: [
      {
        file: "partitions/taking/ready-messages.ts",
        find: `if (isSame(intake.parts, parts)) return;`,
        replace: `if (isSame(intake.parts, parts) || parts.length < intake.parts.length) return;`,
      },
    ],
  },
  {
    name: "leftovers-kept",
    breaks:
      "Messages that came while no call waited are not given back: they wait in the process, and closing loses them.",
    worlds: ["spread"],
    tests: ["unit/partitions/gathering.test.ts", "integration/partitions/api.test.ts"],
    edits: [
      {
        file: "partitions/taking/gathering.ts",
        find: `    this.#giveBack(() => true);`,
        replace: `    this.#giveBack(({ source }) => !this.#sources.includes(source));`,
      },
    ],
  },
  {
    name: "pause-of-new-partitions",
    breaks: "New partitions of a paused queue are not paused: their messages are delivered.",
    worlds: ["partitions", "pauses"],
    tests: [
      "integration/partitions/change.test.ts",
      "fault/partitions/exclusive-change.long.test.ts",
    ],
    edits: [
      {
        file: "partitions/parts/prepare.ts",
        find: `if ((await pauses.ask(call)) === isPaused) return;`,
        replace: `if (!isPaused || !(await pauses.ask(call))) return;`,
      },
    ],
  },
];

/** Slips in exclusive consumption. */
export const EXCLUSIVE: readonly Mutant[] = [
  {
    name: "retried-behind-others",
    breaks:
      "A strict queue makes a failed message an ordinary retry: later messages of its key overtake it.",
    worlds: ["exclusive"],
    tests: ["integration/partitions/exclusive.long.test.ts"],
    edits: [
      {
        file: "reliable/group/settlements.ts",
        find: `if (this.#keeping !== undefined && failure !== undefined) {`,
        replace: `if (this.#keeping !== undefined && failure !== undefined && delay === 0) {`,
      },
    ],
  },
  {
    name: "not-put-aside",
    breaks: "A message is handed out though an earlier one of its key waits for its retry.",
    worlds: ["exclusive"],
    tests: ["integration/partitions/exclusive.long.test.ts", "unit/partitions/aside.test.ts"],
    edits: [
      {
        file: "partitions/exclusive/group-tenure.ts",
        find: `if (read.entry.heldBackUntil === undefined && !this.#aside.hasBefore(read)) return read;`,
        replace: `if (read.entry.heldBackUntil === undefined) return read;`,
      },
    ],
  },
  {
    name: "rank-forgotten",
    breaks:
      "A failed message loses its rank: after a hand-over, later messages of its key come first.",
    worlds: ["exclusive"],
    tests: ["moves/partitions/strict.test.ts", "integration/partitions/exclusive.long.test.ts"],
    edits: [
      {
        file: "lua/reliable/deliveries.ts",
        find: `local id = appendEntry(found, rankOf(entry, found))`,
        replace: `local id = appendEntry(found)`,
      },
    ],
  },
  {
    name: "no-kill",
    breaks:
      "A new holder does not kill the connection of one that did not release: that one goes on reading, and order is lost.",
    worlds: ["exclusive"],
    tests: [
      "integration/partitions/exclusive.long.test.ts",
      "fault/partitions/exclusive.long.test.ts",
    ],
    edits: [
      {
        file: "partitions/exclusive/lease.ts",
        find: `for (const connection of reply.stale) {`,
        replace: `for (const connection of reply.stale.slice(1)) {`,
      },
    ],
  },
  {
    name: "fence-by-the-clock-alone",
    breaks: "A fence is the server's time alone: it falls when the clock is set back.",
    worlds: ["exclusive"],
    tests: ["moves/partitions/hold.test.ts", "fault/partitions/exclusive-fences.long.test.ts"],
    edits: [
      {
        file: "lua/partitions/hold.ts",
        find: `if owner ~= process then fence = math.max(fence + 1, micros) end`,
        replace: `if owner ~= process then fence = micros end`,
      },
    ],
  },
  {
    name: "lease-without-end",
    breaks:
      "A holder does not measure its lease: after it stood still, its next handler begins while another process has the key.",
    worlds: ["exclusive"],
    tests: [
      "integration/partitions/lease.test.ts",
      "integration/partitions/exclusive.long.test.ts",
    ],
    edits: [
      {
        file: "partitions/exclusive/lease.ts",
        find: `presenceTime.now() < this.#endsAt - MARGIN;`,
        replace: `this.#endsAt > MARGIN;`,
      },
      {
        file: "partitions/exclusive/lease.ts",
        find: `new DeadlineTimer(() => this.lose(NOT_RENEWED), `,
        replace: `new DeadlineTimer(() => this.#ending.clear(), `,
      },
    ],
  },
  {
    name: "bound-of-the-other-mode",
    breaks:
      "A drain goes on by the bound of groups that had been given the same: what one group has not been given is left.",
    worlds: ["partitions"],
    tests: ["moves/partitions/drain-page.test.ts"],
    edits: [
      {
        file: "lua/partitions/drain-page.ts",
        find: `(not isNoted or isAll ~= (mode == "all"))`,
        replace: `not isNoted`,
      },
    ],
  },
  {
    name: "late-renewal",
    breaks:
      "A lease on a partition lasts from when the reply to its renewal came: two handlers of one key at once.",
    worlds: ["exclusive"],
    tests: ["integration/partitions/lease.test.ts"],
    edits: [
      {
        file: "partitions/exclusive/lease.ts",
        find: `isStopped) this.#renewed(sentAt);`,
        replace: `isStopped) this.#renewed(presenceTime.now());`,
      },
    ],
  },
  {
    name: "lease-by-one-clock",
    breaks:
      "A step of the server's clock ends leases: another process takes the partition while a handler runs.",
    worlds: ["exclusive"],
    tests: ["moves/partitions/hold.test.ts"],
    edits: [
      {
        file: "lua/partitions/hold.ts",
        find: `local left = past and endsAt - math.min(now, past) or duration`,
        replace: `local left = endsAt - now`,
      },
    ],
  },
  {
    name: "released-before-done",
    breaks:
      "A holder releases its partition while its handler runs: two handlers of one key at once.",
    worlds: ["exclusive"],
    tests: ["integration/partitions/exclusive.long.test.ts"],
    edits: [
      {
        file: "partitions/exclusive/holding.ts",
        find: `        await this.#tenure.done;
        this.#tenure = undefined;`,
        replace: `        const ended = new Promise<void>((resolve) => {
          lease.signal.addEventListener("abort", () => resolve());
          this.#waking.signal.addEventListener("abort", () => resolve());
        });
        await Promise.race([this.#tenure.done, ended]);
        this.#tenure = undefined;`,
      },
    ],
  },
  {
    name: "waiting-counts",
    breaks: "The death of a process that only waits for the end of a pause counts as an attempt.",
    worlds: ["exclusive"],
    tests: ["moves/partitions/strict.test.ts", "moves/partitions/hold.test.ts"],
    edits: [
      {
        file: "lua/partitions/inherit.ts",
        find: `local isAttempted = counted == "1" and (not entry or wasHandedOut(entry, deliveries))`,
        replace: `local isAttempted = counted == "1"`,
      },
      {
        file: "lua/partitions/inherit.ts",
        find: `(not isAttempted or isHeldBack(entry, now))`,
        replace: `not isAttempted`,
      },
    ],
  },
  {
    name: "reading-counts",
    breaks:
      "A retry that its group reads once more counts as handed out: the death of its process is an attempt that nobody made.",
    worlds: ["exclusive"],
    tests: ["moves/partitions/strict.test.ts"],
    edits: [
      {
        file: "lua/places/in-flight.ts",
        find: `export const HANDED_OUT = 2;`,
        replace: `export const HANDED_OUT = 1;`,
      },
    ],
  },
];
