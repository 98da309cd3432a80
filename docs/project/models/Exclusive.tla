----------------------------- MODULE Exclusive -----------------------------
(***************************************************************************)
(* One consumer per key, in strict order. Messages 1 and 2 have one key.   *)
(* They belong to partition 0 while there is one partition, and to 1 when  *)
(* there are two. Consumers "A" and "B" start, stall, die, and share the   *)
(* partitions; a handler may fail, and its message then waits for the end  *)
(* of its pause. The queue is paused and resumed. Two processes change the *)
(* number of partitions from 1 to 2 at once, and one of them may die.      *)
(*                                                                         *)
(* A fact is its epoch: 1 is "1 partition", 2 "holding, from 1 to 2", 3 "2 *)
(* partitions".                                                            *)
(*                                                                         *)
(* Left out: other keys, several groups, dead letters, the batches by      *)
(* which messages migrate (see Migration). A process holds one partition.  *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Consumers,   \* processes that consume the queue: "A", "B"
  Changers,    \* processes that change the number: "first", "second"
  Fails,       \* how many handlers fail
  Stalls, Deaths, Crashes, Pauses, \* how often a consumer stalls or dies, a changer dies, the queue is paused
  Mutant       \* "none", or what is broken on purpose

Messages == {1, 2}
Partitions == {0, 1}
Nobody == [who |-> "nobody", isOver |-> FALSE, consumer |-> 0]

VARIABLES
  facts,       \* partition -> the fact beside it; 0 if there is none
  stream,      \* partition -> the unread entries, in order
  inFlight,    \* partition -> the entries in flight, in the order of their places; `for` is the fence of the consumer
  lease,       \* partition -> who has it; isOver; consumer: the fence of its consumer, or 0
  fence,       \* partition -> the last fence
  stale,       \* partition -> connections of holders that did not release the lease
  orphans,     \* partition -> consumers of former holders, and whether they released the lease
  idle,        \* for a mutant: the fact for which the holder of partition 0 has noted that it is idle
  delayed,     \* the partition in which message 2 is delayed; -1 when it is ready
  isPaused,    \* whether the queue is paused
  consumers,   \* what each consumer knows and does
  changers,    \* what each process does that changes the number
  past         \* what has happened, to judge by; no script reads it

redis == <<facts, stream, inFlight, lease, fence, stale, orphans, idle, delayed, isPaused>>
vars == <<redis, consumers, changers, past>>

NewEntry(m) == [m |-> m, failed |-> 0, isHeldBack |-> FALSE, count |-> 0, for |-> 0]
Away == [state |-> "off", holds |-> -1, fence |-> 0, isConnected |-> FALSE, hasInherited |-> FALSE, read |-> 0,
         runs |-> 0, isTold |-> FALSE, known |-> 1]

Init ==
  /\ facts = [p \in Partitions |-> IF p = 0 THEN 1 ELSE 0]
  /\ stream = [p \in Partitions |-> IF p = 0 THEN <<NewEntry(1)>> ELSE <<>>]
  /\ inFlight = [p \in Partitions |-> <<>>]
  /\ lease = [p \in Partitions |-> Nobody]
  /\ fence = [p \in Partitions |-> 0]
  /\ stale = [p \in Partitions |-> {}]
  /\ orphans = [p \in Partitions |-> {}]
  /\ idle = 0 /\ delayed = 0 /\ isPaused = FALSE
  /\ consumers = [c \in Consumers |-> Away]
  /\ changers = [x \in Changers |-> [at |-> "begin", todo |-> {}]]
  /\ past = [handled |-> {}, delivered |-> [m \in Messages |-> 0], failed |-> [m \in Messages |-> 0], resting |-> {}, highest |-> [fence |-> 0, of |-> <<>>], isFenceOld |-> FALSE,
             isEarly |-> FALSE, isDisordered |-> FALSE, stalls |-> 0, deaths |-> 0, crashes |-> 0, pauses |-> 0]

-----------------------------------------------------------------------------
(* Which partition a consumer should hold, as it computes from the members: src/partitions/exclusive/held-share.ts. *)

IsSeen(c) == c \in Consumers /\ consumers[c].state = "up"
\* While the number changes, none. A mutant of the protocol of before holds on.
Wanted(c) ==
  LET fact == consumers[c].known
      one == IF IsSeen("A") THEN "A" ELSE "B"
  IN CASE fact = 1 -> IF c = one THEN 0 ELSE -1
       [] fact = 2 -> IF Mutant = "idle notes" /\ c = one THEN 0 ELSE -1
       [] OTHER -> IF c = "B" THEN 1 ELSE IF IsSeen("B") THEN 0 ELSE 1

Holds(c) == LET p == consumers[c].holds IN p # -1 /\ lease[p].who = c /\ fence[p] = consumers[c].fence
Mine(c) == LET p == consumers[c].holds IN
  IF p = -1 THEN <<>> ELSE SelectSeq(inFlight[p], LAMBDA e : e.for = consumers[c].fence)
Without(seq, m) == SelectSeq(seq, LAMBDA e : e.m # m)
Changed(seq, m, new) == [i \in DOMAIN seq |-> IF seq[i].m = m THEN new ELSE seq[i]]
Sets(c, record) == consumers' = [consumers EXCEPT ![c] = record]

\* @environment A consumer starts.
Start(c) ==
  /\ consumers[c].state = "off"
  /\ Sets(c, [Away EXCEPT !.state = "up", !.known = facts[0]])
  /\ UNCHANGED <<redis, changers, past>>

\* @process A consumer hears of a newer fact, by a refused script or a notice.
Learn(c) ==
  /\ consumers[c].state = "up"
  /\ \E p \in Partitions : facts[p] > consumers[c].known /\ consumers' = [consumers EXCEPT ![c].known = facts[p]]
  /\ UNCHANGED <<redis, changers, past>>

\* @script src/lua/partitions/hold.ts hold
TakeLease(c) ==
  LET p == Wanted(c) me == consumers[c] IN
  /\ me.state = "up" /\ me.holds = -1 /\ me.runs = 0 /\ p # -1
  /\ facts[p] <= me.known                      \* otherwise Redis refuses it, and the consumer learns the fact
  /\ lease[p].who \in {"nobody", c} \/ lease[p].isOver
  /\ lease' = [lease EXCEPT ![p] = [who |-> c, isOver |-> FALSE, consumer |-> 0]]
  /\ fence' = [fence EXCEPT ![p] = @ + 1]
  /\ facts' = [facts EXCEPT ![p] = me.known]
  /\ stale' = [stale EXCEPT ![p] = @ \cup ({lease[p].who} \ {"nobody", "change"})]
  /\ orphans' = [orphans EXCEPT ![p] = @ \cup
       IF lease[p].consumer > 0 THEN {[consumer |-> lease[p].consumer, hasReleased |-> FALSE]} ELSE {}]
  /\ Sets(c, [me EXCEPT !.holds = p, !.fence = fence[p] + 1, !.isConnected = FALSE, !.hasInherited = FALSE,
                        !.read = 0, !.isTold = FALSE])
  /\ UNCHANGED <<stream, inFlight, idle, delayed, isPaused, changers, past>>

\* @script src/lua/partitions/hold.ts noteHold
\* Before, the consumer has killed the connections of holders that did not release the lease.
Connect(c) ==
  LET me == consumers[c] p == me.holds IN
  /\ me.state = "up" /\ p # -1 /\ ~me.isConnected /\ ~me.isTold
  /\ consumers' = [d \in Consumers |->
       IF d = c THEN IF Holds(c) THEN [me EXCEPT !.isConnected = TRUE] ELSE [me EXCEPT !.isTold = TRUE]
       ELSE IF d \in stale[p] /\ consumers[d].holds = p /\ Mutant # "no kill"
            THEN [consumers[d] EXCEPT !.isConnected = FALSE] ELSE consumers[d]]
  /\ stale' = IF Holds(c) THEN [stale EXCEPT ![p] = {}] ELSE stale
  /\ UNCHANGED <<facts, stream, inFlight, lease, fence, orphans, idle, delayed, isPaused, changers, past>>

\* What a lost delivery becomes: an attempt if a handler had it, else as it was.
Inherited(e, hasReleased, owner) ==
  LET isAttempt == ~hasReleased /\ ((~e.isHeldBack /\ e.count > 0) \/ Mutant = "waiting counts")
  IN [e EXCEPT !.for = owner, !.count = 0, !.failed = IF isAttempt THEN @ + 1 ELSE @,
               !.isHeldBack = @ /\ Mutant # "pause in the process"]

\* @script src/lua/partitions/inherit.ts inherit
Inherit(c) ==
  LET me == consumers[c] p == me.holds
      of(e) == {o \in orphans[p] : o.consumer = e.for}
  IN
  /\ me.state = "up" /\ p # -1 /\ me.isConnected /\ ~me.hasInherited /\ Holds(c)
  /\ inFlight' = [inFlight EXCEPT ![p] = [i \in DOMAIN @ |->
       IF of(@[i]) = {} THEN @[i]
       ELSE Inherited(@[i], \E o \in of(@[i]) : o.hasReleased, me.fence)]]
  /\ orphans' = [orphans EXCEPT ![p] = {}]
  /\ lease' = [lease EXCEPT ![p].consumer = me.fence]
  /\ consumers' = [consumers EXCEPT ![c].hasInherited = TRUE]
  /\ UNCHANGED <<facts, stream, fence, stale, idle, delayed, isPaused, changers, past>>

\* @process XREADGROUP: Redis gives the next entry to the connection, even if its process stands still. No script.
Read(c) ==
  LET me == consumers[c] p == me.holds IN
  /\ me.isConnected /\ me.hasInherited /\ me.read = 0 /\ me.runs = 0 /\ stream[p] # <<>>
  /\ ~isPaused \/ me.state = "stalled"
  /\ stream' = [stream EXCEPT ![p] = Tail(@)]
  /\ inFlight' = [inFlight EXCEPT ![p] = Append(@, [Head(stream[p]) EXCEPT !.for = me.fence, !.count = 1])]
  /\ consumers' = [consumers EXCEPT ![c].read = Head(stream[p]).m]
  /\ past' = [past EXCEPT !.delivered[Head(stream[p]).m] = @ + 1]
  /\ UNCHANGED <<facts, lease, fence, stale, orphans, idle, delayed, isPaused, changers>>

\* A handler begins.
Begins(c, m, deliveries) ==
  past' = [past EXCEPT
    !.delivered[m] = @ + deliveries,
    !.isEarly = @ \/ m \in past.resting,
    !.isDisordered = @ \/ \E other \in Messages : other < m /\ other \notin past.handled,
    !.isFenceOld = @ \/ consumers[c].fence < past.highest.fence
                     \/ (consumers[c].fence = past.highest.fence /\ past.highest.of # <<c, consumers[c].holds>>),
    !.highest = [fence |-> consumers[c].fence, of |-> <<c, consumers[c].holds>>]]

\* @process What was read is handed out, if nothing with its key has to be handled before.
HandOverRead(c) ==
  LET me == consumers[c] m == me.read IN
  /\ me.state = "up" /\ m # 0 /\ ~me.isTold /\ ~isPaused
  /\ Mine(c) # <<>> /\ Mine(c)[1].m = m /\ ~Mine(c)[1].isHeldBack
  /\ Sets(c, [me EXCEPT !.read = 0, !.runs = m])
  /\ Begins(c, m, 0)
  /\ UNCHANGED <<redis, changers>>

\* @script src/lua/reliable/deliveries.ts handOut
\* With "never" as the time: what was read is put aside, and its delivery does not count.
PutAside(c) ==
  LET me == consumers[c] p == me.holds m == me.read mine == Mine(c) IN
  /\ me.state = "up" /\ m # 0 /\ ~me.isTold
  /\ \E e \in {mine[i] : i \in DOMAIN mine} : e.m = m /\ (e.isHeldBack \/ mine[1].m # m)
  /\ inFlight' = [inFlight EXCEPT ![p] = [i \in DOMAIN @ |-> IF @[i].m = m THEN [@[i] EXCEPT !.count = 0] ELSE @[i]]]
  /\ consumers' = [consumers EXCEPT ![c].read = 0]
  /\ past' = [past EXCEPT !.delivered[m] = @ - 1]
  /\ UNCHANGED <<facts, stream, lease, fence, stale, orphans, idle, delayed, isPaused, changers>>

\* @script src/lua/reliable/deliveries.ts handOut
HandOut(c) ==
  LET me == consumers[c] p == me.holds mine == Mine(c) IN
  /\ me.state = "up" /\ me.hasInherited /\ ~me.isTold /\ me.runs = 0 /\ me.read = 0 /\ ~isPaused
  /\ mine # <<>> /\ ~mine[1].isHeldBack
  /\ inFlight' = [inFlight EXCEPT ![p] = Changed(@, mine[1].m, [mine[1] EXCEPT !.count = 1])]
  /\ consumers' = [consumers EXCEPT ![c].runs = mine[1].m]
  /\ Begins(c, mine[1].m, 1)
  /\ UNCHANGED <<facts, stream, lease, fence, stale, orphans, idle, delayed, isPaused, changers>>

\* @script src/lua/reliable/deliveries.ts ack
Done(c) ==
  LET me == consumers[c] p == me.holds m == me.runs
      isMine == \E i \in DOMAIN Mine(c) : Mine(c)[i].m = m
  IN
  /\ me.state = "up" /\ m # 0
  /\ inFlight' = IF isMine THEN [inFlight EXCEPT ![p] = Without(@, m)] ELSE inFlight
  /\ past' = IF isMine THEN [past EXCEPT !.handled = @ \cup {m}] ELSE past
  /\ consumers' = [consumers EXCEPT ![c].runs = 0]
  /\ UNCHANGED <<facts, stream, lease, fence, stale, orphans, idle, delayed, isPaused, changers>>

\* @script src/lua/reliable/deliveries.ts again
Fail(c) ==
  LET me == consumers[c] p == me.holds m == me.runs
      isMine == \E i \in DOMAIN Mine(c) : Mine(c)[i].m = m
      old == CHOOSE e \in {inFlight[p][i] : i \in DOMAIN inFlight[p]} : e.m = m
  IN
  /\ me.state = "up" /\ m # 0 /\ past.failed[m] < Fails
  /\ inFlight' = IF ~isMine THEN inFlight ELSE
       [inFlight EXCEPT ![p] = Changed(@, m, [old EXCEPT !.failed = @ + 1, !.isHeldBack = TRUE, !.count = 0])]
  /\ past' = IF isMine THEN [past EXCEPT !.failed[m] = @ + 1, !.resting = @ \cup {m}] ELSE past
  /\ consumers' = [consumers EXCEPT ![c].runs = 0]
  /\ UNCHANGED <<facts, stream, lease, fence, stale, orphans, idle, delayed, isPaused, changers>>

\* @environment The pause of a failed message is over, on the server's clock.
PauseEnds(m) ==
  LET free(seq) == [i \in DOMAIN seq |-> IF seq[i].m = m THEN [seq[i] EXCEPT !.isHeldBack = FALSE] ELSE seq[i]] IN
  /\ m \in past.resting
  /\ past' = [past EXCEPT !.resting = @ \ {m}]
  /\ stream' = [p \in Partitions |-> free(stream[p])]
  /\ inFlight' = [p \in Partitions |-> free(inFlight[p])]
  /\ UNCHANGED <<facts, lease, fence, stale, orphans, idle, delayed, isPaused, consumers, changers>>

\* @script src/lua/partitions/hold.ts releaseHold
\* The consumer should not hold the partition any more. Its handler has ended, its connection is closed.
Release(c) ==
  LET me == consumers[c] p == me.holds
      isLeft == \E i \in DOMAIN inFlight[p] : inFlight[p][i].for = lease[p].consumer
  IN
  /\ me.state = "up" /\ p # -1 /\ me.runs = 0 /\ (Wanted(c) # p \/ me.isTold)
  /\ Sets(c, [me EXCEPT !.holds = -1, !.isConnected = FALSE, !.hasInherited = FALSE, !.read = 0, !.isTold = FALSE])
  /\ IF Holds(c)
     THEN /\ lease' = [lease EXCEPT ![p] = Nobody]
          /\ orphans' = [orphans EXCEPT ![p] = @ \cup
               IF lease[p].consumer > 0 /\ isLeft THEN {[consumer |-> lease[p].consumer, hasReleased |-> TRUE]} ELSE {}]
     ELSE UNCHANGED <<lease, orphans>>
  /\ UNCHANGED <<facts, stream, inFlight, fence, stale, idle, delayed, isPaused, changers, past>>

\* @mutant Of the protocol of before: the holder notes for its fact that it has nothing to do.
NoteIdle(c) ==
  /\ Mutant = "idle notes" /\ consumers[c].state = "up" /\ consumers[c].holds = 0 /\ consumers[c].hasInherited
  /\ consumers[c].runs = 0 /\ stream[0] = <<>> /\ inFlight[0] = <<>> /\ idle # consumers[c].known
  /\ idle' = consumers[c].known
  /\ UNCHANGED <<facts, stream, inFlight, lease, fence, stale, orphans, delayed, isPaused, consumers, changers, past>>

\* @environment A process stands still.
Stall(c) ==
  /\ consumers[c].state = "up" /\ past.stalls < Stalls
  /\ consumers' = [consumers EXCEPT ![c].state = "stalled"]
  /\ past' = [past EXCEPT !.stalls = @ + 1]
  /\ UNCHANGED <<redis, changers>>

\* @environment A process dies, and its connections with it. What a handler had counts as an attempt.
Die(c) ==
  /\ consumers[c].state \in {"up", "stalled"} /\ past.deaths < Deaths
  /\ Sets(c, [Away EXCEPT !.state = "dead"])
  /\ past' = [past EXCEPT !.deaths = @ + 1]
  /\ UNCHANGED <<redis, changers>>

\* @environment A lease runs out that nobody renews: its process stands still, or is dead, or it is that of a change.
Expire(p) ==
  /\ lease[p].who # "nobody" /\ ~lease[p].isOver
  /\ lease[p].who \in Consumers => consumers[lease[p].who].state # "up" \/ consumers[lease[p].who].holds # p
  /\ lease' = [lease EXCEPT ![p].isOver = TRUE]
  /\ UNCHANGED <<facts, stream, inFlight, fence, stale, orphans, idle, delayed, isPaused, consumers, changers, past>>

\* @environment A process goes on. It measures its lease itself, so it knows at once if that is over, and tells its handler.
Wake(c) ==
  LET me == consumers[c] isOver == me.holds # -1 /\ (~Holds(c) \/ lease[me.holds].isOver) IN
  /\ me.state = "stalled"
  /\ Sets(c, [me EXCEPT !.state = "up", !.isTold = isOver])
  /\ UNCHANGED <<redis, changers, past>>

\* @script src/lua/delayed/transfer.ts transfer
\* Message 2 is due. Nothing is transferred while the fact is "holding".
Transfer ==
  /\ (delayed = 0 /\ facts[0] = 1) \/ (delayed = 1 /\ facts[1] = 3)
  /\ stream' = [stream EXCEPT ![delayed] = Append(@, NewEntry(2))]
  /\ delayed' = -1
  /\ UNCHANGED <<facts, inFlight, lease, fence, stale, orphans, idle, isPaused, consumers, changers, past>>

\* @script src/lua/queue/set-paused.ts setPaused
SetPaused ==
  /\ ~isPaused => past.pauses < Pauses
  /\ isPaused' = ~isPaused
  /\ past' = [past EXCEPT !.pauses = IF isPaused THEN @ ELSE @ + 1]
  /\ UNCHANGED <<facts, stream, inFlight, lease, fence, stale, orphans, idle, delayed, consumers, changers>>

-----------------------------------------------------------------------------
(* The change: src/partitions/change/change.ts. *)

Goes(x, at, todo) == changers' = [changers EXCEPT ![x] = [at |-> at, todo |-> todo]]
\* Whether the change keeps the order: it does, unless it is certain that nobody ever consumed exclusively.
TakesLeases == Mutant # "holding only if seen" \/ \E c \in Consumers : consumers[c].state # "off"

\* @script src/lua/partitions/fact.ts beginChange
Begin(x) ==
  /\ changers[x].at = "begin"
  /\ facts' = [facts EXCEPT ![0] = IF @ = 1 THEN 2 ELSE @]
  /\ IF facts[0] = 3 THEN Goes(x, "done", {})
     ELSE Goes(x, IF facts[0] = 1 /\ ~TakesLeases THEN "move only" ELSE "announce", {})
  /\ UNCHANGED <<stream, inFlight, lease, fence, stale, orphans, idle, delayed, isPaused, consumers, past>>

\* @script src/lua/partitions/fact.ts advanceFact
Announce(x) ==
  /\ changers[x].at \in {"announce", "move only"}
  /\ facts' = [facts EXCEPT ![1] = IF @ < 2 THEN 2 ELSE @]
  /\ Goes(x, CASE changers[x].at = "move only" -> "migrate only" [] Mutant = "idle notes" -> "wait" [] OTHER -> "lease",
          Partitions)
  /\ UNCHANGED <<stream, inFlight, lease, fence, stale, orphans, idle, delayed, isPaused, consumers, past>>

\* Redis refuses a script of a process that knows less: it looks again.
IsOld == facts[0] = 3 \/ facts[1] = 3
LooksAgain(x) == Goes(x, IF facts[0] = 3 THEN "done" ELSE "settle", {}) /\ UNCHANGED <<redis, consumers, past>>

\* @script src/lua/partitions/hold.ts hold
LeaseForChange(x, p) ==
  /\ changers[x].at = "lease" /\ p \in changers[x].todo
  /\ IF facts[p] = 3 THEN LooksAgain(x) ELSE
     /\ lease[p].who \in {"nobody", "change"} \/ lease[p].isOver
     /\ lease' = [lease EXCEPT ![p] = [who |-> "change", isOver |-> FALSE, consumer |-> 0]]
     /\ fence' = [fence EXCEPT ![p] = IF lease[p].who = "change" THEN @ ELSE @ + 1]
     /\ stale' = [stale EXCEPT ![p] = @ \cup ({lease[p].who} \ {"nobody", "change"})]
     /\ orphans' = [orphans EXCEPT ![p] = @ \cup
          IF lease[p].consumer > 0 THEN {[consumer |-> lease[p].consumer, hasReleased |-> FALSE]} ELSE {}]
     /\ Goes(x, "lease", changers[x].todo \ {p})
     /\ UNCHANGED <<facts, stream, inFlight, idle, delayed, isPaused, consumers, past>>

\* @process It kills the connections of holders that did not release their leases.
Kill(x) ==
  /\ changers[x].at = "lease" /\ changers[x].todo = {}
  /\ consumers' = [c \in Consumers |->
       IF \E p \in Partitions : c \in stale[p] /\ consumers[c].holds = p
       THEN [consumers[c] EXCEPT !.isConnected = FALSE] ELSE consumers[c]]
  /\ Goes(x, "migrate", {})
  /\ UNCHANGED <<redis, past>>

\* @script src/lua/partitions/pull-out.ts pullOutPage
Migrate(x) ==
  /\ changers[x].at \in {"migrate", "migrate only"}
  /\ IF IsOld THEN LooksAgain(x) ELSE
     /\ delayed' = IF delayed = 0 THEN 1 ELSE delayed
     /\ Goes(x, IF changers[x].at = "migrate" /\ Mutant # "idle notes" THEN "drain" ELSE "settle", {})
     /\ UNCHANGED <<facts, stream, inFlight, lease, fence, stale, orphans, idle, isPaused, consumers, past>>

\* @script src/lua/partitions/drain-page.ts drainPage
\* One message at a time: first what former holders had in flight, in order, then what is unread. All of it belongs to 1.
Drain(x) ==
  LET held == inFlight[0] unread == stream[0]
      fromHeld == held # <<>> /\ (unread = <<>> \/ Mutant # "unread first")
      of == {o \in orphans[0] : o.consumer = held[1].for}
      entry == IF fromHeld THEN Inherited(held[1], \E o \in of : o.hasReleased, 0) ELSE Head(unread)
  IN
  /\ changers[x].at = "drain"
  /\ IF IsOld THEN LooksAgain(x)
     ELSE IF held = <<>> /\ unread = <<>>
     THEN Goes(x, "release", {}) /\ UNCHANGED <<redis, consumers, past>>
     ELSE /\ stream' = [stream EXCEPT ![0] = IF fromHeld THEN @ ELSE Tail(@),
                                      ![1] = Append(@, [entry EXCEPT !.for = 0, !.count = 0])]
          /\ inFlight' = IF fromHeld THEN [inFlight EXCEPT ![0] = Tail(@)] ELSE inFlight
          /\ UNCHANGED <<facts, lease, fence, stale, orphans, idle, delayed, isPaused, consumers, changers, past>>

\* @script src/lua/partitions/hold.ts releaseHold
ReleaseForChange(x) ==
  /\ changers[x].at = "release"
  /\ IF IsOld THEN LooksAgain(x) ELSE
     /\ lease' = [p \in Partitions |-> IF lease[p].who = "change" THEN Nobody ELSE lease[p]]
     /\ Goes(x, IF Mutant = "fences are not raised" THEN "settle" ELSE "raise", {})
     /\ UNCHANGED <<facts, stream, inFlight, fence, stale, orphans, idle, delayed, isPaused, consumers, past>>

\* @script src/lua/partitions/hold.ts raiseFence
RaiseFence(x) ==
  LET highest == IF fence[0] > fence[1] THEN fence[0] ELSE fence[1] IN
  /\ changers[x].at = "raise"
  /\ IF IsOld THEN LooksAgain(x) ELSE
     /\ fence' = [p \in Partitions |-> highest]
     /\ Goes(x, "settle", {})
     /\ UNCHANGED <<facts, stream, inFlight, lease, stale, orphans, idle, delayed, isPaused, consumers, past>>

\* @script src/lua/partitions/fact.ts changeFact
\* Partition 0 gets the stable fact last.
Settle(x) ==
  /\ changers[x].at = "settle"
  /\ IF facts[1] < 3 THEN facts' = [facts EXCEPT ![1] = 3] /\ UNCHANGED changers
     ELSE facts' = [facts EXCEPT ![0] = 3] /\ Goes(x, "done", {})
  /\ UNCHANGED <<stream, inFlight, lease, fence, stale, orphans, idle, delayed, isPaused, consumers, past>>

\* @mutant Of the protocol of before: the change waits until the holder has handled all, and has noted that for this fact.
WaitForIdle(x) ==
  /\ changers[x].at = "wait"
  /\ stream[0] = <<>> /\ inFlight[0] = <<>>
  /\ lease[0].who = "nobody" \/ lease[0].isOver \/ idle = 2
  /\ Goes(x, "migrate", {})
  /\ UNCHANGED <<redis, consumers, past>>

\* @environment The process that changes the number dies.
Crash ==
  /\ past.crashes < Crashes /\ changers["first"].at \notin {"begin", "done", "dead"}
  /\ Goes("first", "dead", {})
  /\ past' = [past EXCEPT !.crashes = @ + 1]
  /\ UNCHANGED <<redis, consumers>>

Next ==
  \/ \E c \in Consumers : Start(c)
  \/ \E c \in Consumers : Learn(c)
  \/ \E c \in Consumers : TakeLease(c)
  \/ \E c \in Consumers : Connect(c)
  \/ \E c \in Consumers : Inherit(c)
  \/ \E c \in Consumers : Read(c)
  \/ \E c \in Consumers : HandOverRead(c)
  \/ \E c \in Consumers : PutAside(c)
  \/ \E c \in Consumers : HandOut(c)
  \/ \E c \in Consumers : Done(c)
  \/ \E c \in Consumers : Fail(c)
  \/ \E m \in Messages : PauseEnds(m)
  \/ \E c \in Consumers : Release(c)
  \/ \E c \in Consumers : NoteIdle(c)
  \/ \E c \in Consumers : Stall(c)
  \/ \E c \in Consumers : Die(c)
  \/ \E p \in Partitions : Expire(p)
  \/ \E c \in Consumers : Wake(c)
  \/ Transfer
  \/ SetPaused
  \/ \E x \in Changers : Begin(x)
  \/ \E x \in Changers : Announce(x)
  \/ \E x \in Changers, p \in Partitions : LeaseForChange(x, p)
  \/ \E x \in Changers : Kill(x)
  \/ \E x \in Changers : Migrate(x)
  \/ \E x \in Changers : Drain(x)
  \/ \E x \in Changers : ReleaseForChange(x)
  \/ \E x \in Changers : RaiseFence(x)
  \/ \E x \in Changers : Settle(x)
  \/ \E x \in Changers : WaitForIdle(x)
  \/ Crash

Consumes(c) ==
  Start(c) \/ Learn(c) \/ Read(c) \/ Done(c) \/ Fail(c) \/ TakeLease(c) \/ Connect(c) \/ Inherit(c) \/ HandOverRead(c) \/ PutAside(c) \/ HandOut(c)
  \/ Release(c) \/ NoteIdle(c)
Changes(x) ==
  Announce(x) \/ (\E p \in Partitions : LeaseForChange(x, p)) \/ Kill(x) \/ Migrate(x) \/ Drain(x)
  \/ ReleaseForChange(x) \/ RaiseFence(x) \/ Settle(x) \/ WaitForIdle(x)

\* In the code some third process goes on with a change. Here it is the second, if the first has begun one.
GoesOn == Changers = {"first", "second"} /\ changers["first"].at = "dead" /\ Mutant # "nobody goes on" /\ Begin("second")

Progress ==
  \/ \E c \in Consumers : Consumes(c)
  \/ \E x \in Changers : Changes(x)
  \/ GoesOn
  \/ Transfer
  \/ \E p \in Partitions : Expire(p)
  \/ \E m \in Messages : PauseEnds(m)

\* What goes on happening as long as it can. A process that stands still need not wake, nor need a pause of the queue end.
Spec == Init /\ [][Next]_vars /\ WF_vars(Progress)

-----------------------------------------------------------------------------
(* The promises *)

\* A handler that was told that its lease is over may still run; that is the limit of the promise.
Running == {c \in Consumers : consumers[c].state = "up" /\ consumers[c].runs # 0 /\ ~consumers[c].isTold}

\* Messages of one key are handled by one process at a time, also while processes come and go and the number changes.
OneHandlerPerKey == Cardinality(Running) <= 1

\* They are handled in order: with strict, none before an earlier one is acknowledged.
InOrder == ~past.isDisordered

\* A message whose handler throws is delivered again as `retry` says, never early.
PauseIsKept == ~past.isEarly

\* The fences that a key sees only grow.
FencesGrow == ~past.isFenceOld

\* Only a delivery can fail: the death of a process that only waits for the end of a pause is no attempt.
AttemptsAreExact == \A p \in Partitions :
  LET all == {stream[p][i] : i \in DOMAIN stream[p]} \cup {inFlight[p][i] : i \in DOMAIN inFlight[p]}
  IN \A e \in all : e.failed >= past.failed[e.m] /\ e.failed <= past.delivered[e.m]

\* Each message is in one place, or handled.
OnePlace == \A m \in Messages :
  LET in(seq) == Cardinality({i \in DOMAIN seq : seq[i].m = m})
  IN in(stream[0]) + in(stream[1]) + in(inFlight[0]) + in(inFlight[1])
     + (IF m = 2 /\ delayed # -1 THEN 1 ELSE 0) + (IF m \in past.handled THEN 1 ELSE 0) = 1

\* A change ends, though its process dies, two are made at once, or the queue is paused.
ChangeEnds == (facts[0] = 2) ~> (facts[0] = 3)
\* So does each call of `setPartitions`.
CallsEnd == \A x \in Changers : (changers[x].at = "announce") ~> (changers[x].at \in {"done", "dead"})

\* Unless the queue stays paused, everything is handled in the end.
IsHandled == <>(past.handled = Messages \/ isPaused)

=============================================================================
