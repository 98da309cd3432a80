/** What a model's promises say, what each mutant changes, and how each limit breaks; `npm run docs` writes it into the page. */
interface ModelWords {
  readonly promises: Readonly<Record<string, string>>;
  readonly mutants: Readonly<Record<string, string>>;
  readonly limits: Readonly<Record<string, string>>;
}

/** By the names of the models. */
export const MODEL_WORDS: Readonly<Record<string, ModelWords>> = {
  Offers: {
    promises: {
      OfferIsStored:
        "When `offer` resolves, the message is in Redis, or has gone the way of all messages",
      StoredOnce:
        "An offer that is sent again is stored once, unless a copy comes when the message has left the delayed ones",
      RejectedIsNotStored:
        "An offer that resolves as rejected, because its key is taken, stores nothing",
      NeverEarly: "No message is moved before its deadline on the server's clock",
      CancelIsExact:
        "`cancel` returns true: the message is never delivered. False: it was moved, or did not exist",
      MovedOnce: "Several processes that transfer move each message once",
      TakenOnce: "A message goes to one taker, once",
      AbortLosesNothing:
        "Aborting a `take`, a `poll` that times out, `close()`: no message is lost",
      DueIsMoved:
        "A message that fell due while no process was running is moved once the first one is back",
      ReadyIsTaken: "Ready messages are taken",
    },
    mutants: {
      "id per copy": "Each copy of an offer gets an id of its own",
      "own clock": "A process moves by its own clock, which is ahead",
      "index is trusted": "`cancel` believes the index of keys without looking",
      "cancel is sent again": "The script of `cancel` is sent again after a lost reply",
      "transfer in two commands": "A push and a removal instead of a script",
      "no receipt": "A give-back is repeated without a receipt",
    },
    limits: {
      StoredOnceAlways:
        "The first copy of an offer is stored, and moved, cancelled or replaced; then the second copy arrives, and Redis knows nothing of the first",
      CancelIsExactAlways:
        "The first copy is stored and its reply lost; `cancel` by the key returns true; the second copy arrives and is stored",
      RejectedIsNotStoredAlways:
        "The second copy overtakes the first, which was sent over a connection that is cut by now, and is rejected; when the key is free, the first arrives",
      TakenOnceAlways:
        "The second attempt to give back overtakes the first; its reply is there and the receipt removed; then the first arrives",
    },
  },
  Leases: {
    promises: {
      NothingIsLost: "Each group handles a message until it is acknowledged",
      OnePlace: "A message is in one place, and is settled once",
      LeaseIsKept:
        "Whoever gives its signs of life keeps its leases, whatever the server's clock does",
      HeldIsInFlight:
        "What a process holds within its lease is in flight for it, so two never handle a message at once",
      AttemptsAreExact: "`attempt` is always one more than the number of failures",
      DeadAfterAll:
        "A message becomes a dead letter after `maxAttempts` failed attempts, not before",
      IsSettled:
        "After a kill in the handler the message is delivered again, until it is acknowledged or a dead letter",
    },
    mutants: {
      "one look": "One look at the whole timeout declares a consumer dead",
      "no second check": "`reclaim` does not ask again how long the consumer was silent",
      "settled by message": "A settlement does not ask for whom the entry is in flight",
      "death is not counted": "`reclaim` does not count the delivery",
      "strangers at once":
        "An entry that is not in hand is given back though its read is under way",
      "strangers stay": "An entry whose reply was lost is not given back",
    },
    limits: {
      LeaseIsKeptAlways:
        "The holder stands still for a timeout, wakes and gives a sign of life; at that moment the clock is set forward by as much as the sign has taken back. Nobody can tell that from a death",
      HeldIsInFlightAlways:
        "A process stands still while the reply of its read waits in the socket; the message is reclaimed; the process wakes, gives a sign of life, and then begins to handle the reply. Its next sign of life tells it",
    },
  },
  Migration: {
    promises: {
      NothingIsLost: "A message that is delayed stays so while the number changes",
      OnePlace:
        "It is in one place, in a partition or in a batch on its way, whatever is sent twice",
      StoredOnce: "An offer that is sent again across a change is stored once",
      CancelIsExact:
        "The verdict of `cancel` is exact: a message that is there all the time is found",
      AtHome: "Where the fact is stable, each message is where it belongs",
      ChangeEnds:
        "A change ends in a stable fact everywhere, with no batch open, though its process dies",
      CallsEnd: "So do the calls that are made meanwhile",
    },
    mutants: {
      "no receipt": "`push-in` does not note the numbers of batches",
      "drop before push": "The batch may be dropped from the journal before it has arrived",
      "open batch is overwritten": "`pull-out` writes its batch although one is open",
      "new, then old":
        "`cancel` asks the new partition and then the old one, instead of pulling first",
      "no guard": "The scripts do not compare the caller's fact with the one in Redis",
      "numbers are counted": "A batch number is one more than the last, without the clock",
      "sent again at once":
        "A refused offer goes to the new partition without a look where an earlier copy may be",
      "nobody goes on": "Nobody continues a change whose process has died",
    },
    limits: {},
  },
  Exclusive: {
    promises: {
      OneHandlerPerKey:
        "Messages of one key are handled by one process at a time, also while processes come and go and the number changes",
      InOrder: "They are handled in order: none before an earlier one is acknowledged",
      PauseIsKept: "A message whose handler throws is delivered again as `retry` says, never early",
      FencesGrow: "Each new holder that a key sees has a greater fence",
      AttemptsAreExact:
        "Only a delivery can fail: the death of a process that waits for the end of a pause is no attempt",
      OnePlace: "A message is in one place, or handled",
      ChangeEnds:
        "A change ends, though its process dies, two are made at once, or the queue is paused",
      CallsEnd: "So does each call of `setPartitions`",
      IsHandled: "Everything is handled in the end",
    },
    mutants: {
      "no kill": "Who takes over does not kill the connection of a holder that did not release",
      "waiting counts": "A message that waits for the end of its pause counts as attempted",
      "unread first": "A change moves unread messages before those in flight",
      "fences are not raised": "A change does not carry the greatest fence to all partitions",
      "pause in the process":
        "The process that waited knew the pause, not the message: strict retries came early at a hand-over",
      "idle notes":
        "A change waited until the holder had noted for its fact that it was idle. Of two changes at once the slower waited for a note that nobody wrote any more; and while the queue was paused no change ended",
      "nobody goes on": "Nobody continued a change whose process had died",
      "holding only if seen":
        "A change while no consumer ran left ready messages where they were: then handlers of one key overlapped",
    },
    limits: {},
  },
};
