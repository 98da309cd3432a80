----------------------------- MODULE Migration -----------------------------
(***************************************************************************)
(* A change of the number of partitions, from 1 to 2 or from 2 to 1. Both  *)
(* messages belong to the last partition. Meanwhile one process cancels    *)
(* message "a", and another offers message "b", whose script is sent again.*)
(* The process that changes the number may die at any point, and another   *)
(* one goes on with it. A script may arrive twice, the second time late.   *)
(*                                                                         *)
(* A fact is its epoch: 1 is "1 partition", 2 "moving from 1 to 2", 3 "2   *)
(* partitions", 4 "moving from 2 to 1", 5 "1 partition".                   *)
(*                                                                         *)
(* Left out: what is ready or in flight (see Exclusive), business keys, the*)
(* ordinary queue as a part.                                               *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  First,       \* the fact before the change: 1 or 3
  Calls,       \* who calls meanwhile: "caller" cancels, "producer" offers
  Crashes, LateCopies, Deletions, \* how often each of these happens
  Mutant       \* "none", or what is broken on purpose

Messages == {"a", "b"}
Partitions == {0, 1}
Changers == {"first", "second"}
Processes == Changers \cup {"caller", "producer"}

Moving == First + 1
Stable == First + 2
To(fact) == IF fact \in {1, 4, 5} THEN 1 ELSE 2
From(fact) == IF fact \in {1, 2, 5} THEN 1 ELSE 2
IsMoving(fact) == fact \in {2, 4}
Active(fact) == 0..((IF IsMoving(fact) THEN 2 ELSE To(fact)) - 1)
Home(fact) == To(fact) - 1
\* The partition that the messages leave during a change.
Source(fact) == From(fact) - 1

VARIABLES
  facts,       \* partition -> the fact beside it
  zset,        \* partition -> the delayed messages there
  journal,     \* partition -> last: the last number; isOpen: whether a batch is open; rows; to: where they belong
  arrived,     \* partition -> the number of the last batch that came from the other one
  clock,       \* of the servers
  processes,   \* what each knows and does: at: its next step; known: its fact; batch: to deliver; todo: partitions
  copies,      \* of the offer, on their way: the fact that each was sent by
  late,        \* a copy of a script of a migration, on its way
  past         \* what has happened, to judge by; no script reads it

vars == <<facts, zset, journal, arrived, clock, processes, copies, late, past>>
redis == <<facts, zset, journal, arrived, clock>>

NoBatch == [number |-> 0, rows |-> {}, to |-> 0, source |-> 0, isPushed |-> FALSE]
Greatest(a, b) == IF a > b THEN a ELSE b

Init ==
  /\ facts = [p \in Partitions |-> IF p \in Active(First) THEN First ELSE 0]
  /\ zset = [p \in Partitions |-> IF p = Home(First) THEN {"a"} ELSE {}]
  /\ journal = [p \in Partitions |-> [last |-> 0, isOpen |-> FALSE, rows |-> {}, to |-> 0]]
  /\ arrived = [p \in Partitions |-> 0]
  /\ clock = 1
  /\ processes = [p \in Processes |-> [at |-> CASE p = "second" -> "idle" [] p \in Calls \cup {"first"} -> "begin" [] OTHER -> "none", known |-> First,
                                       batch |-> NoBatch, todo |-> {}]]
  /\ copies = {}
  /\ late = [kind |-> "none"]
  /\ past = [verdict |-> "none", cancelled |-> FALSE, stored |-> 0, sentBy |-> {}, isResolved |-> FALSE,
             crashes |-> 0, lateCopies |-> 0, deletions |-> 0, cuts |-> 0]

-----------------------------------------------------------------------------
(* The guard of every script: src/lua/guarded.ts. *)

IsRefused(p, known) == facts[p] > known /\ Mutant # "no guard"
Noted(p, known) == [facts EXCEPT ![p] = Greatest(@, known)]

\* A process whose script was refused knows the newer fact, and begins again.
Restart(who, p) == processes' = [processes EXCEPT ![who] =
  [at |-> IF who = "producer" THEN "refused" ELSE "begin", known |-> facts[p], batch |-> NoBatch, todo |-> {}]]

\* The script `pull-out` in a partition, and what it replies. The page is the same, with all messages as `wanted`.
Batch(p) == [number |-> journal[p].last, rows |-> journal[p].rows, to |-> journal[p].to, source |-> p, isPushed |-> FALSE]
Leaving(p, known, wanted) == IF Home(known) = p THEN {} ELSE zset[p] \cap wanted
Number(p) == IF Mutant = "numbers are counted" THEN journal[p].last + 1 ELSE Greatest(journal[p].last + 1, clock)
IsOld(p) == journal[p].isOpen /\ Mutant # "open batch is overwritten"
PullOut(p, known, wanted) ==
  LET rows == Leaving(p, known, wanted)
  IN IF IsOld(p) \/ rows = {}
     THEN UNCHANGED <<zset, journal, clock>>
     ELSE /\ zset' = [zset EXCEPT ![p] = @ \ rows]
          /\ journal' = [journal EXCEPT ![p] = [last |-> Number(p), isOpen |-> TRUE, rows |-> rows, to |-> Home(known)]]
          /\ clock' = Greatest(clock, Number(p)) + 1
Pulled(p, known, wanted) ==
  LET rows == Leaving(p, known, wanted)
  IN IF IsOld(p) THEN Batch(p)
     ELSE IF rows = {} THEN NoBatch
     ELSE [number |-> Number(p), rows |-> rows, to |-> Home(known), source |-> p, isPushed |-> FALSE]

PushIn(batch) ==
  IF arrived[batch.to] >= batch.number /\ Mutant # "no receipt"
  THEN UNCHANGED <<zset, arrived>>
  ELSE /\ zset' = [zset EXCEPT ![batch.to] = @ \cup batch.rows]
       /\ arrived' = [arrived EXCEPT ![batch.to] = batch.number]

DropBatch(p, number) ==
  journal' = IF journal[p].isOpen /\ journal[p].last = number
             THEN [journal EXCEPT ![p].isOpen = FALSE, ![p].rows = {}, ![p].to = 0] ELSE journal

\* A copy of the script may be on its way.
MayRepeat(copy) ==
  \/ UNCHANGED <<late, past>>
  \/ /\ past.lateCopies < LateCopies /\ late.kind = "none"
     /\ late' = copy
     /\ past' = [past EXCEPT !.lateCopies = @ + 1]

-----------------------------------------------------------------------------
(* What every process does with a batch that it has pulled out, or has met: src/partitions/routing/migration.ts. *)

\* @script src/lua/partitions/push-in.ts pushIn
Push(who) ==
  LET me == processes[who] batch == me.batch IN
  /\ batch.number > 0 /\ ~batch.isPushed
  /\ IF IsRefused(batch.to, me.known)
     THEN Restart(who, batch.to) /\ UNCHANGED <<redis, late, past>>
     ELSE /\ PushIn(batch)
          /\ facts' = Noted(batch.to, me.known)
          /\ processes' = [processes EXCEPT ![who].batch.isPushed = TRUE]
          /\ MayRepeat([kind |-> "push", batch |-> batch, known |-> me.known])
          /\ UNCHANGED <<journal, clock>>
  /\ UNCHANGED copies

\* @script src/lua/partitions/pull-out.ts dropBatch
Drop(who) ==
  LET me == processes[who] batch == me.batch IN
  /\ batch.number > 0
  /\ batch.isPushed \/ Mutant = "drop before push"
  /\ IF IsRefused(batch.source, me.known)
     THEN Restart(who, batch.source) /\ UNCHANGED <<redis, late, past>>
     ELSE /\ DropBatch(batch.source, batch.number)
          /\ facts' = Noted(batch.source, me.known)
          /\ processes' = IF batch.isPushed THEN [processes EXCEPT ![who].batch = NoBatch] ELSE processes
          /\ MayRepeat([kind |-> "drop", batch |-> batch, known |-> me.known])
          /\ UNCHANGED <<zset, arrived, clock>>
  /\ UNCHANGED copies

\* Pulls out of a partition, and goes on at one step if nothing old was met, at another one otherwise.
Pull(who, p, wanted, then, ifOld, todo) ==
  LET me == processes[who] IN
  /\ me.batch.number = 0
  /\ IF IsRefused(p, me.known)
     THEN Restart(who, p) /\ UNCHANGED <<redis, late, past>>
     ELSE /\ PullOut(p, me.known, wanted)
          /\ facts' = Noted(p, me.known)
          /\ processes' = [processes EXCEPT ![who] =
               [@ EXCEPT !.batch = Pulled(p, me.known, wanted), !.at = IF IsOld(p) THEN ifOld ELSE then,
                         !.todo = IF IsOld(p) /\ ifOld # then THEN @ ELSE todo]]
          /\ MayRepeat([kind |-> "pull", p |-> p, wanted |-> wanted, known |-> me.known])
          /\ UNCHANGED arrived
  /\ UNCHANGED copies

-----------------------------------------------------------------------------
(* The change: src/partitions/change/change.ts. *)

\* Moves on to the next step of a change, with the partitions to go through in it.
Goes(who, at, known, todo) ==
  processes' = [processes EXCEPT ![who] = [@ EXCEPT !.at = at, !.known = known, !.todo = todo]]
IsAt(who, at) == who \in Changers /\ processes[who].at = at /\ processes[who].batch.number = 0

\* @script src/lua/partitions/fact.ts beginChange
Begin(who) ==
  /\ IsAt(who, "begin")
  /\ LET fact == IF facts[0] = First THEN Moving ELSE facts[0]
     IN /\ facts' = [facts EXCEPT ![0] = fact]
        /\ IF fact = Moving THEN Goes(who, "announce", fact, Active(fact))
           ELSE Goes(who, "recover", fact, Active(fact))
  /\ UNCHANGED <<zset, journal, arrived, clock, copies, late, past>>

\* @process The change has stood still for some seconds, and another process goes on with it.
Continue ==
  /\ processes["second"].at = "idle" /\ IsMoving(facts[0]) /\ Mutant # "nobody goes on"
  /\ Goes("second", "begin", facts[0], {})
  /\ UNCHANGED <<redis, copies, late, past>>

\* @script src/lua/partitions/fact.ts readFact
\* In its guarded form, which writes the fact down.
Announce(who, p) ==
  /\ IsAt(who, "announce") /\ p \in processes[who].todo
  /\ facts' = Noted(p, processes[who].known)
  /\ LET todo == processes[who].todo \ {p}
         known == Greatest(processes[who].known, facts[p])
     IN IF todo = {} THEN Goes(who, "finish batches", known, Active(known)) ELSE Goes(who, "announce", known, todo)
  /\ UNCHANGED <<zset, journal, arrived, clock, copies, late, past>>

\* @script src/lua/partitions/pull-out.ts pullOut
\* With no rows: it only returns the open batch.
FinishBatch(who, p) ==
  LET me == processes[who] todo == me.todo \ {p}
      next == CASE me.at = "finish batches" -> "pages" [] me.at = "settle" -> "end" [] me.at = "last batch" -> "late"
                [] OTHER -> "late"
      at == IF todo = {} THEN next ELSE me.at
  IN /\ who \in Changers /\ me.at \in {"finish batches", "settle", "last batch", "recover"} /\ p \in me.todo
     /\ Pull(who, p, {}, at, at, todo)

\* @script src/lua/partitions/pull-out.ts pullOutPage
\* One message at a time, until none is left that belongs elsewhere.
Page(who) ==
  LET me == processes[who] p == Source(me.known) IN
  /\ who \in Changers /\ me.at = "pages" /\ me.batch.number = 0
  /\ IF Leaving(p, me.known, Messages) = {} /\ ~journal[p].isOpen /\ ~IsRefused(p, me.known)
     THEN \* The others get the stable fact first, with the scripts that finish their batches.
          /\ Goes(who, "settle", Stable, Active(me.known) \ {0})
          /\ facts' = Noted(p, me.known)
          /\ UNCHANGED <<zset, journal, arrived, clock, copies, late, past>>
     ELSE \E m \in Messages : Pull(who, p, {m}, "pages", "pages", {})

\* @script src/lua/partitions/fact.ts changeFact
End(who) ==
  /\ IsAt(who, "end")
  /\ facts' = [facts EXCEPT ![0] = IF @ = Moving THEN Stable ELSE @]
  /\ Goes(who, "last batch", Stable, {0})
  /\ UNCHANGED <<zset, journal, arrived, clock, copies, late, past>>

\* @script src/lua/partitions/pull-out.ts pullOutPage
\* What was left in the partition that is removed.
DrainLate(who) ==
  /\ who \in Changers /\ processes[who].at = "late" /\ processes[who].batch.number = 0
  /\ IF To(Stable) = 1 /\ (zset[1] # {} \/ journal[1].isOpen)
     THEN Pull(who, 1, Messages, "late", "late", {})
     ELSE Goes(who, "done", Stable, {}) /\ UNCHANGED <<redis, copies, late, past>>

-----------------------------------------------------------------------------
(* A call of cancel, with the id of message "a": src/partitions/routing/routing.ts, pull, then act. *)

\* @script src/lua/partitions/pull-out.ts pullOut
CallerPulls ==
  LET known == processes["caller"].known IN
  /\ processes["caller"].at = "begin"
  /\ IF IsMoving(known) /\ Mutant # "new, then old"
     THEN Pull("caller", Source(known), {"a"}, "act", "begin", {})
     ELSE processes' = [processes EXCEPT !["caller"].at = "act"] /\ UNCHANGED <<redis, copies, late, past>>

\* @script src/lua/delayed/remove.ts remove
Remove ==
  LET known == processes["caller"].known
      p == IF processes["caller"].at = "act old" THEN Source(known) ELSE Home(known)
      isThere == "a" \in zset[p]
      next == IF Mutant = "new, then old" /\ IsMoving(known) /\ ~isThere /\ processes["caller"].at = "act"
              THEN "act old" ELSE "done"
  IN
  /\ processes["caller"].at \in {"act", "act old"} /\ processes["caller"].batch.number = 0
  /\ IF IsRefused(p, known)
     THEN Restart("caller", p) /\ UNCHANGED <<redis, past>>
     ELSE /\ zset' = [zset EXCEPT ![p] = @ \ {"a"}]
          /\ facts' = Noted(p, known)
          /\ processes' = [processes EXCEPT !["caller"].at = next]
          /\ past' = [past EXCEPT !.verdict = IF next = "done" THEN (IF isThere THEN "true" ELSE "false") ELSE @, !.cancelled = isThere]
          /\ UNCHANGED <<journal, arrived, clock>>
  /\ UNCHANGED <<copies, late>>

-----------------------------------------------------------------------------
(* The offer of message "b": src/partitions/routing/routing.ts, send. *)

\* @process The script is sent to the partition that the message belongs to by the fact that the producer knows.
Send ==
  LET me == processes["producer"] IN
  /\ me.at = "begin"
  /\ processes' = [processes EXCEPT !["producer"].at = "sent"]
  /\ copies' = copies \cup {[fact |-> me.known, isLast |-> TRUE]}
  /\ past' = [past EXCEPT !.sentBy = @ \cup {me.known}]
  /\ UNCHANGED <<redis, late>>

\* @environment The connection is cut, and ioredis sends the script again. The first copy may still be on its way.
Cut ==
  LET known == processes["producer"].known IN
  /\ processes["producer"].at = "sent" /\ past.cuts = 0
  /\ copies' = {[c EXCEPT !.isLast = FALSE] : c \in copies} \cup {[fact |-> known, isLast |-> TRUE]}
  /\ past' = [past EXCEPT !.cuts = 1]
  /\ UNCHANGED <<redis, processes, late>>

\* @script src/lua/delayed/offer.ts offer
Offer(copy) ==
  LET p == Home(copy.fact) IN
  /\ copies' = copies \ {copy}
  /\ IF IsRefused(p, copy.fact)
     THEN /\ IF copy.isLast THEN Restart("producer", p) ELSE UNCHANGED processes
          /\ UNCHANGED <<redis, past>>
     ELSE /\ zset' = [zset EXCEPT ![p] = @ \cup {"b"}]
          /\ facts' = Noted(p, copy.fact)
          /\ past' = [past EXCEPT !.stored = IF "b" \in zset[p] THEN @ ELSE @ + 1,
                                  !.isResolved = @ \/ copy.isLast]
          \* The reply to an earlier copy is lost with its connection.
          /\ processes' = IF copy.isLast THEN [processes EXCEPT !["producer"].at = "done"] ELSE processes
          /\ UNCHANGED <<journal, arrived, clock>>
  /\ UNCHANGED late

\* @process The script was refused as old. The message may be where an earlier copy has stored it: pull, then act.
Refused ==
  LET known == processes["producer"].known
      earlier == {Home(fact) : fact \in past.sentBy} \ {Home(known)}
      isMoved == IsMoving(known)
  IN
  /\ processes["producer"].at = "refused"
  /\ IF Mutant = "sent again at once" \/ (earlier = {} /\ ~isMoved)
     THEN Goes("producer", "begin", known, {})
     ELSE Goes("producer", "pull", known, earlier \cup (IF isMoved THEN {Source(known)} ELSE {}))
  /\ UNCHANGED <<redis, copies, late, past>>

\* @script src/lua/partitions/pull-out.ts pullOut
\* By the bytes of the member, which are the same in each copy.
ProducerPulls ==
  LET me == processes["producer"] p == CHOOSE one \in me.todo : TRUE IN
  /\ me.at = "pull" /\ me.todo # {}
  /\ Pull("producer", p, {"b"}, IF me.todo = {p} THEN "pulled" ELSE "pull", "pull", me.todo \ {p})

\* @process All is where it belongs, and the offer is sent once more.
SendAgain ==
  /\ processes["producer"].at = "pulled" /\ processes["producer"].batch.number = 0
  /\ Goes("producer", "begin", processes["producer"].known, {})
  /\ UNCHANGED <<redis, copies, late, past>>

-----------------------------------------------------------------------------
\* @environment The process that changes the number dies.
Crash ==
  /\ past.crashes < Crashes /\ processes["first"].at \notin {"done", "dead"}
  /\ processes' = [processes EXCEPT !["first"] = [@ EXCEPT !.at = "dead", !.batch = NoBatch, !.todo = {}]]
  /\ past' = [past EXCEPT !.crashes = @ + 1]
  /\ UNCHANGED <<redis, copies, late>>

\* @environment A copy of a script arrives that was sent over a connection that is cut by now.
Late ==
  /\ late.kind # "none"
  /\ late' = [kind |-> "none"]
  /\ LET p == CASE late.kind = "push" -> late.batch.to [] late.kind = "drop" -> late.batch.source [] OTHER -> late.p
     IN IF IsRefused(p, late.known) THEN UNCHANGED redis
        ELSE /\ facts' = Noted(p, late.known)
             /\ CASE late.kind = "push" -> PushIn(late.batch) /\ UNCHANGED <<journal, clock>>
                  [] late.kind = "drop" -> DropBatch(p, late.batch.number) /\ UNCHANGED <<zset, arrived, clock>>
                  [] OTHER -> PullOut(p, late.known, late.wanted) /\ UNCHANGED arrived
  /\ UNCHANGED <<processes, copies, past>>

\* @environment Somebody deletes the journal of a partition, or a failover loses it, while no batch is open.
LoseNumber(p) ==
  /\ past.deletions < Deletions /\ ~journal[p].isOpen /\ journal[p].last > 0
  /\ journal' = [journal EXCEPT ![p].last = 0]
  /\ past' = [past EXCEPT !.deletions = @ + 1]
  /\ UNCHANGED <<facts, zset, arrived, clock, processes, copies, late>>

Next ==
  \/ \E who \in Processes : Push(who)
  \/ \E who \in Processes : Drop(who)
  \/ \E who \in Changers : Begin(who)
  \/ Continue
  \/ \E who \in Changers, p \in Partitions : Announce(who, p)
  \/ \E who \in Changers, p \in Partitions : FinishBatch(who, p)
  \/ \E who \in Changers : Page(who)
  \/ \E who \in Changers : End(who)
  \/ \E who \in Changers : DrainLate(who)
  \/ CallerPulls
  \/ Remove
  \/ Send
  \/ Cut
  \/ \E copy \in copies : Offer(copy)
  \/ Refused
  \/ ProducerPulls
  \/ SendAgain
  \/ Crash
  \/ Late
  \/ \E p \in Partitions : LoseNumber(p)

Steps(who) ==
  \/ Push(who) \/ Drop(who) \/ Begin(who) \/ Page(who) \/ End(who) \/ DrainLate(who)
  \/ \E p \in Partitions : Announce(who, p) \/ FinishBatch(who, p)

\* What goes on happening as long as it can.
Spec == Init /\ [][Next]_vars
  /\ \A who \in Processes : WF_vars(Steps(who))
  /\ WF_vars(Continue) /\ WF_vars(CallerPulls) /\ WF_vars(Remove) /\ WF_vars(Send) /\ WF_vars(Refused)
  /\ WF_vars(ProducerPulls) /\ WF_vars(SendAgain) /\ WF_vars(\E copy \in copies : copy.isLast /\ Offer(copy))

-----------------------------------------------------------------------------
(* The promises *)

\* A batch that has not arrived is a place, too.
IsOnItsWay(m, p) == journal[p].isOpen /\ m \in journal[p].rows /\ arrived[journal[p].to] < journal[p].last
Places(m) ==
  Cardinality({p \in Partitions : m \in zset[p]}) + Cardinality({p \in Partitions : IsOnItsWay(m, p)})

\* No message is lost while the number changes.
NothingIsLost ==
  /\ ~past.cancelled => Places("a") >= 1
  /\ past.stored > 0 => Places("b") >= 1

\* A message is in one place, whatever is sent twice.
OnePlace ==
  /\ \A m \in Messages : Places(m) <= 1
  /\ past.cancelled => Places("a") = 0

\* An offer that is sent again across a change is stored once.
StoredOnce == past.stored <= 1

\* The verdict of `cancel` is exact: the message is there all the time, so it is found.
CancelIsExact == past.verdict # "false"

\* Where the fact is stable, every message is where it belongs.
AtHome == \A p \in Partitions, m \in Messages : facts[p] = Stable /\ m \in zset[p] => p = Home(Stable)

\* A change ends, though its process dies.
ChangeEnds == IsMoving(facts[0]) ~> (facts = [p \in Partitions |-> Stable] /\ \A p \in Partitions : ~journal[p].isOpen)

\* So do the calls that are made meanwhile.
CallsEnd == <>(("caller" \in Calls => past.verdict # "none") /\ ("producer" \in Calls => past.isResolved))

=============================================================================
