------------------------------- MODULE Leases -------------------------------
(***************************************************************************)
(* A reliable queue with one message and one group of two consumers. One   *)
(* of them, the holder, may stall, die, or lose the reply of a read. The   *)
(* other one watches it, reclaims what it leaves, and handles that. The    *)
(* server's clock may be set forward or back by a whole timeout.           *)
(*                                                                         *)
(* A timeout is four ticks. A live holder gives a sign of life each tick   *)
(* (the code: each third of the timeout), and the other one looks as often.*)
(*                                                                         *)
(* Left out: retries that wait, other groups, what a redrive does.         *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  MaxAttempts,
  Steps,       \* how often the server's clock is set
  Losses,      \* how many replies of reads are lost
  Mutant       \* "none", or what is broken on purpose

Consumers == {"holder", "other"}
Timeout == 4
Half == 2
Beat == 1
Long == 12     \* from here on it does not matter how long

VARIABLES
  stream,      \* the entries: id, attempts made, and for whom it is in flight ("nobody": not read yet)
  idle,        \* for how long Redis has not seen the holder, by the server's clock
  consumers,   \* what each knows: held: entries in hand; reading: an entry in a reply on its way, or 0
  holder,      \* state: up, stalled, dead; fresh: ticks since it sent its last beat; unheld: of its last beat;
               \* strangers: to be given back
  watch,       \* isLooking: there was a first look; age: ticks since; idle: at that look; verdict: the silence of
               \* the second look, or 0; hasLooked: in this tick
  past         \* what has happened, to judge by; no script reads it

vars == <<stream, idle, consumers, holder, watch, past>>

NoWatch == [isLooking |-> FALSE, age |-> 0, idle |-> 0, verdict |-> 0, hasLooked |-> FALSE]
Least(a, b) == IF a < b THEN a ELSE b
Of(c) == {e \in stream : e.owner = c}
Entry(id) == CHOOSE e \in stream : e.id = id
NextId == Least(past.lastId + 1, 9)

Init ==
  /\ stream = {[id |-> 1, attempts |-> 0, owner |-> "nobody"]}
  /\ idle = 0
  /\ consumers = [c \in Consumers |-> [held |-> {}, reading |-> 0]]
  /\ holder = [state |-> "up", fresh |-> 0, unheld |-> {}, strangers |-> {}]
  /\ watch = NoWatch
  /\ past = [
       lastId |-> 1,
       settled |-> 0,          \* how often a settlement that ends the message was carried out
       isDead |-> FALSE,       \* whether the message is a dead letter
       failed |-> 0,           \* how many deliveries have failed, or ended with the death of their consumer
       silent |-> 0,           \* ticks since the holder's last sign of life, on a clock that nobody sets
       cameLate |-> {},        \* entries that were no longer in flight for the consumer when it got them
       steps |-> 0, losses |-> 0, faults |-> 0,
       isStolen |-> FALSE]     \* whether a holder that gives its signs of life has lost its lease

\* Appends the message as a new entry, or buries it, and finishes the old entry.
Again(old, attempts) ==
  LET isLast == attempts >= MaxAttempts /\ attempts > old.attempts
  IN /\ stream' = (stream \ {old}) \cup
          IF isLast THEN {} ELSE {[id |-> NextId, attempts |-> attempts, owner |-> "nobody"]}
     /\ past' = [past EXCEPT !.lastId = NextId, !.isDead = @ \/ isLast, !.failed = @ + attempts - old.attempts]

Sees(c) == IF c = "holder" THEN idle' = 0 /\ past' = [past EXCEPT !.silent = 0] ELSE UNCHANGED <<idle, past>>
CanAct(c) == c = "other" \/ holder.state = "up"

-----------------------------------------------------------------------------
(* Reading and handling. No script: XREADGROUP, by src/reliable/group/reader.ts. *)

\* @process The group gives an entry to the consumer. The reply is on its way.
Read(c) ==
  /\ CanAct(c) /\ consumers[c].reading = 0
  /\ \E e \in Of("nobody") :
       /\ stream' = (stream \ {e}) \cup {[e EXCEPT !.owner = c]}
       /\ consumers' = [consumers EXCEPT ![c].reading = e.id]
  /\ Sees(c)
  /\ UNCHANGED <<holder, watch>>

\* @process The reply is there, and a handler begins.
Begin(c) ==
  /\ CanAct(c) /\ consumers[c].reading # 0
  /\ consumers' = [consumers EXCEPT ![c] = [held |-> @.held \cup {@.reading}, reading |-> 0]]
  /\ past' = IF \E e \in Of(c) : e.id = consumers[c].reading THEN past
             ELSE [past EXCEPT !.cameLate = @ \cup {consumers[c].reading}]
  /\ UNCHANGED <<stream, idle, holder, watch>>

\* @environment The connection is cut, and the reply lost.
LoseReply ==
  /\ past.losses < Losses /\ consumers["holder"].reading # 0
  /\ consumers' = [consumers EXCEPT !["holder"].reading = 0]
  /\ past' = [past EXCEPT !.losses = @ + 1]
  /\ UNCHANGED <<stream, idle, holder, watch>>

\* @script src/lua/reliable/deliveries.ts ack
Ack(c, id) ==
  /\ CanAct(c) /\ id \in consumers[c].held
  /\ consumers' = [consumers EXCEPT ![c].held = @ \ {id}]
  /\ LET mine == {e \in Of(c) : e.id = id}
     IN /\ stream' = stream \ mine
        /\ past' = [past EXCEPT !.settled = @ + Cardinality(mine)]
  /\ UNCHANGED <<idle, holder, watch>>

\* @script src/lua/reliable/deliveries.ts giveBackEntries
\* The handler has failed, and the message is tried again at once; the last time, the script is `bury`.
Fail(c, id) ==
  /\ CanAct(c) /\ id \in consumers[c].held
  /\ consumers' = [consumers EXCEPT ![c].held = @ \ {id}]
  /\ IF \E e \in Of(c) : e.id = id THEN Again(Entry(id), Entry(id).attempts + 1)
     ELSE IF Mutant = "settled by message" /\ Cardinality(stream) < 3
     THEN Again([id |-> id, attempts |-> 0, owner |-> c], 1)
     ELSE UNCHANGED <<stream, past>>
  /\ UNCHANGED <<idle, holder, watch>>

-----------------------------------------------------------------------------
(* The holder's signs of life *)

\* @script src/lua/reliable/consumers.ts beat
Beats ==
  /\ holder.state = "up" /\ (holder.fresh > 0 \/ holder.unheld # {})
  /\ LET ours == {e.id : e \in Of("holder")}
         known == consumers["holder"].held \cup
           (IF Mutant = "strangers at once" THEN {} ELSE {consumers["holder"].reading})
         unheld == ours \ known
     IN /\ consumers' = [consumers EXCEPT !["holder"].held = @ \cap ours]
        /\ holder' = [holder EXCEPT
             !.fresh = 0, !.unheld = unheld,
             !.strangers = IF Mutant = "strangers stay" THEN {}
               ELSE IF Mutant = "strangers at once" THEN unheld ELSE unheld \cap holder.unheld]
        /\ IF ours # {} THEN Sees("holder") ELSE UNCHANGED <<idle, past>>
  /\ UNCHANGED <<stream, watch>>

\* @script src/lua/reliable/deliveries.ts giveBackEntries
\* An entry whose reply was lost. Nobody has handled it, so nothing is counted.
GiveBackStranger(id) ==
  /\ holder.state = "up" /\ id \in holder.strangers
  /\ holder' = [holder EXCEPT !.strangers = @ \ {id}, !.unheld = @ \ {id}]
  /\ IF \E e \in Of("holder") : e.id = id THEN Again(Entry(id), Entry(id).attempts) ELSE UNCHANGED <<stream, past>>
  /\ UNCHANGED <<idle, consumers, watch>>

\* @process No beat has succeeded for a whole timeout: the signals of all deliveries are aborted.
EndOfLease ==
  /\ holder.state = "up" /\ holder.fresh >= Timeout /\ consumers["holder"].held # {}
  /\ consumers' = [consumers EXCEPT !["holder"].held = {}]
  /\ UNCHANGED <<stream, idle, holder, watch, past>>

\* @environment The holder's process stands still, or dies. (Once.)
Fault(state) ==
  /\ holder.state = "up" /\ past.faults = 0
  /\ holder' = [holder EXCEPT !.state = state]
  /\ consumers' = IF state = "dead" THEN [consumers EXCEPT !["holder"] = [held |-> {}, reading |-> 0]] ELSE consumers
  /\ past' = [past EXCEPT !.faults = 1]
  /\ UNCHANGED <<stream, idle, watch>>

\* @environment It goes on.
Wake ==
  /\ holder.state = "stalled"
  /\ holder' = [holder EXCEPT !.state = "up"]
  /\ UNCHANGED <<stream, idle, consumers, watch, past>>

-----------------------------------------------------------------------------
(* The other one watches, by src/reliable/group/reclaim-watch.ts: two looks, at half the timeout and at the whole. *)

\* @script src/lua/reliable/consumers.ts consumers
Look ==
  /\ watch.verdict = 0 /\ ~watch.hasLooked
  /\ LET isSilent == Of("holder") # {} /\ idle >= Half
         isSame == watch.isLooking /\ idle - watch.idle = watch.age
         first == IF isSame THEN watch ELSE [NoWatch EXCEPT !.isLooking = TRUE, !.idle = idle]
         isSecond == idle >= Timeout /\ (first.age >= Half \/ Mutant = "one look")
     IN watch' = IF ~isSilent THEN [NoWatch EXCEPT !.hasLooked = TRUE]
                 ELSE [first EXCEPT !.verdict = IF isSecond THEN idle ELSE 0, !.hasLooked = TRUE]
  /\ UNCHANGED <<stream, idle, consumers, holder, past>>

\* @script src/lua/reliable/reclaim.ts reclaim
Reclaim ==
  /\ watch.verdict > 0
  /\ watch' = [NoWatch EXCEPT !.hasLooked = watch.hasLooked]
  /\ IF Of("holder") # {} /\ (idle >= watch.verdict \/ Mutant = "no second check")
     THEN LET e == CHOOSE one \in Of("holder") : TRUE
              attempts == IF Mutant = "death is not counted" THEN e.attempts ELSE e.attempts + 1
              isLast == attempts >= MaxAttempts
          IN /\ stream' = (stream \ {e}) \cup
                  IF isLast THEN {} ELSE {[id |-> NextId, attempts |-> attempts, owner |-> "nobody"]}
             /\ past' = [past EXCEPT
                  !.lastId = NextId, !.isDead = @ \/ isLast, !.failed = @ + 1,
                  !.isStolen = @ \/ past.silent <= Beat]
     ELSE UNCHANGED <<stream, past>>
  /\ UNCHANGED <<idle, consumers, holder>>

-----------------------------------------------------------------------------
\* @environment A tick. A live process gives its signs of life in time, and looks in time.
Tick ==
  /\ stream # {}
  /\ holder.state = "up" => holder.fresh < Beat
  /\ watch.hasLooked \/ watch.verdict > 0
  /\ idle' = Least(idle + 1, Long)
  /\ holder' = [holder EXCEPT !.fresh = Least(@ + 1, Timeout)]
  /\ watch' = [watch EXCEPT !.age = IF watch.isLooking THEN Least(@ + 1, Long) ELSE 0, !.hasLooked = FALSE]
  /\ past' = [past EXCEPT !.silent = Least(@ + 1, Timeout + 1)]
  /\ UNCHANGED <<stream, consumers>>

\* @environment Somebody sets the server's clock.
StepClock(by) ==
  /\ past.steps < Steps /\ stream # {}
  /\ idle' = Least(idle + by, Long)
  /\ past' = [past EXCEPT !.steps = @ + 1]
  /\ UNCHANGED <<stream, consumers, holder, watch>>

Next ==
  \/ \E c \in Consumers : Read(c)
  \/ \E c \in Consumers : Begin(c)
  \/ LoseReply
  \/ \E c \in Consumers : \E id \in consumers[c].held : Ack(c, id)
  \/ \E c \in Consumers : \E id \in consumers[c].held : Fail(c, id)
  \/ Beats
  \/ \E id \in holder.strangers : GiveBackStranger(id)
  \/ EndOfLease
  \/ \E state \in {"stalled", "dead"} : Fault(state)
  \/ Wake
  \/ Look
  \/ Reclaim
  \/ Tick
  \/ \E by \in {-Timeout, Timeout} : StepClock(by)

\* What goes on happening as long as it can. A handler ends.
Spec == Init /\ [][Next]_vars
  /\ WF_vars(Tick) /\ WF_vars(Beats) /\ WF_vars(Look) /\ WF_vars(Reclaim)
  /\ WF_vars(\E id \in holder.strangers : GiveBackStranger(id))
  /\ \A c \in Consumers :
       WF_vars(Read(c)) /\ WF_vars(Begin(c)) /\ WF_vars(\E id \in consumers[c].held : Ack(c, id) \/ Fail(c, id))

-----------------------------------------------------------------------------
(* The promises *)

\* Each group handles a message until it is acknowledged: it is ready, in flight, acknowledged or a dead letter.
NothingIsLost == stream # {} \/ past.settled > 0 \/ past.isDead

\* A message is in one place, and is settled once.
OnePlace == Cardinality(stream) + past.settled + (IF past.isDead THEN 1 ELSE 0) <= 1

\* Whoever gives its signs of life keeps its leases, whatever the server's clock does. The limit: if it stood still for
\* about a timeout, and the clock was set, nobody can tell these two from a death.
LeaseIsKept == ~past.isStolen \/ (past.faults > 0 /\ past.steps > 0)

\* A process that is within its lease, and was told of no loss, has what it holds. So two never handle a message at once,
\* but for a process that stood still while the clock was set, or before it had the reply of its read.
HeldIsInFlight ==
  holder.state = "up" /\ holder.fresh < Timeout /\ past.steps = 0 =>
    consumers["holder"].held \subseteq {e.id : e \in Of("holder")} \cup past.cameLate

\* `attempt` is always one more than the number of failures.
AttemptsAreExact == \A e \in stream : e.attempts = past.failed

\* A message becomes a dead letter after `maxAttempts` failed attempts, not before.
DeadAfterAll == past.isDead => past.failed >= MaxAttempts

\* After a kill in the handler, the message is delivered again; in the end it is acknowledged or a dead letter.
IsSettled == <>(past.settled > 0 \/ past.isDead)

-----------------------------------------------------------------------------
(* The same promises without their limits. They do not hold, and TLC shows why. *)

LeaseIsKeptAlways == ~past.isStolen
HeldIsInFlightAlways ==
  holder.state = "up" /\ holder.fresh < Timeout /\ past.steps = 0 =>
    consumers["holder"].held \subseteq {e.id : e \in Of("holder")}

=============================================================================
