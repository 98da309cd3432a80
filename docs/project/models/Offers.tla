------------------------------- MODULE Offers -------------------------------
(***************************************************************************)
(* A plain queue: offer, cancel, transfer, take, give back.                *)
(*                                                                         *)
(* The connection of a producer may be cut at any time. Then ioredis sends *)
(* the script again, whether or not the first copy has run, and the first  *)
(* copy may still be on its way. A taker gives back what nobody waits for, *)
(* and tries again if the reply was lost. Each script is one step.         *)
(*                                                                         *)
(* Left out: the insertion order, refusals by Redis, a second queue.       *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Messages,    \* all of them have the same business key
  Delay,       \* of each offer, in ticks of the server's clock
  Cuts,        \* how many connections of producers are cut
  Aborts,      \* how often a message arrives that nobody waits for: 0 or 1
  Outages,     \* how often no process moves messages: 0 or 1
  Mutant       \* "none", or what is broken on purpose

VARIABLES
  server,      \* delayed: the ZSET, members, and how much time each has left; index: the message with the business key;
               \* ready: the LIST; receipt: whether the receipt of the give-back is there
  producer,    \* rule: what an offer does if the key is taken; offers: how each offer stands, as the producer knows;
               \* copies: of scripts, on their way; replies: on their way
  canceller,   \* verdict: of its one call; removed: what that call has removed
  mover,       \* isUp: whether any process moves messages; outages: how often none did; half: for a mutant
  taker,       \* inHand: the message that it has taken; state: of the one give-back; given: what it gives back;
               \* attempts: on their way
  past         \* what has happened, to judge by; no script reads it

vars == <<server, producer, canceller, mover, taker, past>>

\* Both copies of an offer carry the same id, and so the same member.
Member(m, copy) == <<m, IF Mutant = "id per copy" THEN copy ELSE 1>>
Payload(member) == member[1]
IsDelayed(m) == \E d \in server.delayed : Payload(d.member) = m
Without(m) == {d \in server.delayed : Payload(d.member) # m}

Init ==
  /\ server = [delayed |-> {}, index |-> "none", ready |-> <<>>, receipt |-> FALSE]
  /\ \E rule \in {"ignore", "replace"} :
       producer = [rule |-> rule, offers |-> [m \in Messages |-> "new"], copies |-> {}, replies |-> {}]
  /\ canceller = [verdict |-> "none", removed |-> {}]
  /\ mover = [isUp |-> TRUE, outages |-> 0, half |-> {}]
  /\ taker = [inHand |-> "none", state |-> "idle", given |-> "none", attempts |-> {}]
  /\ past = [
       stored |-> [m \in Messages |-> 0],  \* how often it was put into the ZSET
       moved |-> [m \in Messages |-> 0],   \* how often it became ready
       handed |-> [m \in Messages |-> 0],  \* how often a handler got it
       cameLate |-> {},                    \* messages of which a copy came when they had left the ZSET, or after another was rejected
       isEarly |-> FALSE,                  \* whether one became ready before its deadline
       isForgotten |-> FALSE]              \* whether a give-back came when its receipt was removed

-----------------------------------------------------------------------------
(* The producer *)

\* @process offer() is called, and the client sends the script.
CallOffer(m) ==
  /\ producer.offers[m] = "new"
  /\ producer' = [producer EXCEPT !.offers[m] = "sent", !.copies = @ \cup {<<m, 1>>}]
  /\ UNCHANGED <<server, canceller, mover, taker, past>>

\* @script src/lua/delayed/offer-keyed.ts offerKeyed
Offer(m, copy) ==
  /\ <<m, copy>> \in producer.copies
  /\ LET old == IF server.index # "none" /\ IsDelayed(server.index) THEN server.index ELSE "none"
         member == Member(m, copy)
         isKnown == old = m /\ \E d \in server.delayed : d.member = member
         isRejected == old \notin {"none", m} /\ producer.rule = "ignore"
         kept == IF old \in {"none", m} THEN server.delayed ELSE Without(old)
         wasRejected == producer.offers[m] = "rejected" \/ \E c \in 1..2 : <<m, c, "rejected">> \in producer.replies
         cameLate == (past.stored[m] > 0 /\ ~IsDelayed(m)) \/ wasRejected
         outcome == IF isRejected THEN "rejected" ELSE "stored"
         isAwaited == producer.offers[m] = IF copy = 1 THEN "sent" ELSE "sent again"
     IN /\ producer' = [producer EXCEPT
             !.copies = @ \ {<<m, copy>>},
             !.replies = IF isAwaited THEN @ \cup {<<m, copy, outcome>>} ELSE @]
        /\ server' = IF isKnown \/ isRejected THEN server ELSE
             [server EXCEPT !.delayed = kept \cup {[member |-> member, left |-> Delay]}, !.index = m]
        /\ past' = [past EXCEPT
             !.stored[m] = IF isKnown \/ isRejected THEN @ ELSE @ + 1,
             !.cameLate = IF cameLate THEN @ \cup {m} ELSE @]
  /\ UNCHANGED <<canceller, mover, taker>>

\* @process The reply to the last copy reaches the producer: offer() resolves.
Reply(m, copy, outcome) ==
  /\ <<m, copy, outcome>> \in producer.replies
  /\ producer.offers[m] = IF copy = 1 THEN "sent" ELSE "sent again"
  /\ producer' = [producer EXCEPT !.offers[m] = outcome, !.replies = @ \ {<<m, copy, outcome>>}]
  /\ UNCHANGED <<server, canceller, mover, taker, past>>

\* @environment The connection is cut: the reply to the first copy will not come, though the copy may still arrive. ioredis sends it again.
Cut(m) ==
  /\ producer.offers[m] = "sent"
  /\ Cardinality({other \in Messages : producer.offers[other] = "sent again"}) < Cuts
  /\ producer' = [producer EXCEPT
       !.offers[m] = "sent again", !.copies = @ \cup {<<m, 2>>}, !.replies = {r \in @ : r[1] # m}]
  /\ UNCHANGED <<server, canceller, mover, taker, past>>

-----------------------------------------------------------------------------
(* Cancelling by the business key: one call, over the connection that never sends again. *)

\* @script src/lua/delayed/remove.ts remove
Cancel ==
  /\ canceller.verdict = "none" \/ (Mutant = "cancel is sent again" /\ canceller.verdict = "lost")
  /\ LET key == server.index
         isFound == key # "none" /\ (Mutant = "index is trusted" \/ IsDelayed(key))
     IN /\ server' = IF isFound THEN [server EXCEPT !.delayed = Without(key), !.index = "none"] ELSE server
        /\ \E verdict \in {IF isFound THEN "true" ELSE "false", "lost"} :
             canceller' = [verdict |-> verdict, removed |-> IF isFound THEN {key} ELSE canceller.removed]
  /\ UNCHANGED <<producer, mover, taker, past>>

-----------------------------------------------------------------------------
(* Moving. Any number of processes run the script. It is one step, so it does not matter which of them does. *)

Due == {d \in server.delayed : d.left <= (IF Mutant = "own clock" THEN 1 ELSE 0)}
InOrder(s) == CHOOSE seq \in [1..Cardinality(s) -> s] :
  \A i, j \in DOMAIN seq : i < j => seq[i] # seq[j] /\ seq[i].left <= seq[j].left
Payloads(seq) == [i \in DOMAIN seq |-> Payload(seq[i].member)]
Count(f, s) == [m \in Messages |-> f[m] + Cardinality({d \in s : Payload(d.member) = m})]

\* @script src/lua/delayed/transfer.ts transfer
Transfer ==
  /\ mover.isUp /\ Due # {} /\ Mutant # "transfer in two commands"
  /\ LET isOwn == \E d \in Due : Payload(d.member) = server.index
     IN server' = [server EXCEPT
          !.ready = @ \o Payloads(InOrder(Due)),
          !.delayed = @ \ Due,
          !.index = IF isOwn /\ Mutant # "index is trusted" THEN "none" ELSE @]
  /\ past' = [past EXCEPT
       !.moved = Count(@, Due),
       !.isEarly = @ \/ \E d \in Due : d.left > 0]
  /\ UNCHANGED <<producer, canceller, mover, taker>>

\* @mutant The transfer as two commands, a push and a removal.
Push(d) ==
  /\ Mutant = "transfer in two commands" /\ mover.isUp /\ d \in Due /\ Len(server.ready) < 3
  /\ server' = [server EXCEPT !.ready = Append(@, Payload(d.member))]
  /\ mover' = [mover EXCEPT !.half = @ \cup {d}]
  /\ past' = [past EXCEPT !.moved = Count(@, {d})]
  /\ UNCHANGED <<producer, canceller, taker>>

\* @mutant The second of the two commands.
RemovePushed(d) ==
  /\ d \in mover.half
  /\ server' = [server EXCEPT !.delayed = @ \ {d}]
  /\ mover' = [mover EXCEPT !.half = @ \ {d}]
  /\ UNCHANGED <<producer, canceller, taker, past>>

\* @environment All processes that move messages die.
Down ==
  /\ mover.isUp /\ mover.outages < Outages
  /\ mover' = [mover EXCEPT !.isUp = FALSE, !.outages = @ + 1]
  /\ UNCHANGED <<server, producer, canceller, taker, past>>

\* @environment The first of them is back.
Up ==
  /\ ~mover.isUp
  /\ mover' = [mover EXCEPT !.isUp = TRUE]
  /\ UNCHANGED <<server, producer, canceller, taker, past>>

\* @environment Time passes on the server.
Tick ==
  /\ \E d \in server.delayed : d.left > 0
  /\ server' = [server EXCEPT !.delayed = {[d EXCEPT !.left = IF @ > 0 THEN @ - 1 ELSE 0] : d \in @}]
  /\ UNCHANGED <<producer, canceller, mover, taker, past>>

-----------------------------------------------------------------------------
(* Taking *)

\* @script src/lua/ready/ready.ts popFromMany
Take ==
  /\ taker.inHand = "none" /\ server.ready # <<>>
  /\ taker' = [taker EXCEPT !.inHand = Head(server.ready)]
  /\ server' = [server EXCEPT !.ready = Tail(@)]
  /\ UNCHANGED <<producer, canceller, mover, past>>

\* @process Somebody waits for the message, and gets it.
HandOver ==
  /\ taker.inHand # "none" /\ taker.state # "giving back"
  /\ taker' = [taker EXCEPT !.inHand = "none"]
  /\ past' = [past EXCEPT !.handed[taker.inHand] = @ + 1]
  /\ UNCHANGED <<server, producer, canceller, mover>>

\* @process Nobody waits any more: the call was aborted or has timed out, or the client closes. (Once.)
Abort ==
  /\ taker.inHand # "none" /\ taker.state = "idle" /\ Aborts = 1
  /\ taker' = [taker EXCEPT !.state = "giving back", !.given = taker.inHand, !.attempts = {1}]
  /\ UNCHANGED <<server, producer, canceller, mover, past>>

\* @script src/lua/ready/ready.ts giveBack
GiveBack(attempt) ==
  /\ attempt \in taker.attempts
  /\ LET isBack == server.receipt /\ Mutant # "no receipt"
     IN server' = [server EXCEPT !.ready = IF isBack THEN @ ELSE <<taker.given>> \o @, !.receipt = TRUE]
  /\ \E isReplied \in IF attempt = 1 THEN BOOLEAN ELSE {TRUE} :
       taker' = [taker EXCEPT
         !.attempts = @ \ {attempt},
         !.inHand = IF isReplied /\ taker.state = "giving back" THEN "none" ELSE @,
         !.state = IF isReplied /\ taker.state = "giving back" THEN "given back" ELSE @]
  /\ past' = [past EXCEPT !.isForgotten = @ \/ taker.state = "done"]
  /\ UNCHANGED <<producer, canceller, mover>>

\* @process The connection was cut, and the process tries again, with the same receipt. The first attempt may still be on its way.
TryAgain ==
  /\ taker.state = "giving back" /\ 2 \notin taker.attempts
  /\ taker' = [taker EXCEPT !.attempts = @ \cup {2}]
  /\ UNCHANGED <<server, producer, canceller, mover, past>>

\* @process The reply was there. The process removes the receipt.
RemoveReceipt ==
  /\ taker.state = "given back"
  /\ taker' = [taker EXCEPT !.state = "done"]
  /\ server' = [server EXCEPT !.receipt = FALSE]
  /\ UNCHANGED <<producer, canceller, mover, past>>

-----------------------------------------------------------------------------
Next ==
  \/ \E m \in Messages : CallOffer(m)
  \/ \E m \in Messages, copy \in 1..2 : Offer(m, copy)
  \/ \E m \in Messages, copy \in 1..2, outcome \in {"stored", "rejected"} : Reply(m, copy, outcome)
  \/ \E m \in Messages : Cut(m)
  \/ Cancel
  \/ Transfer
  \/ \E d \in server.delayed : Push(d)
  \/ \E d \in mover.half : RemovePushed(d)
  \/ Down
  \/ Up
  \/ Tick
  \/ Take
  \/ HandOver
  \/ Abort
  \/ \E attempt \in 1..2 : GiveBack(attempt)
  \/ TryAgain
  \/ RemoveReceipt

\* What goes on happening as long as it can.
Spec == Init /\ [][Next]_vars
  /\ WF_vars(Tick) /\ WF_vars(Up) /\ WF_vars(Transfer)
  /\ WF_vars(Take) /\ WF_vars(HandOver) /\ WF_vars(TryAgain) /\ WF_vars(\E attempt \in 1..2 : GiveBack(attempt))

-----------------------------------------------------------------------------
(* The promises *)

Places(m) ==
  Cardinality({d \in server.delayed : Payload(d.member) = m})
  + Cardinality({i \in DOMAIN server.ready : server.ready[i] = m})
  + (IF taker.inHand = m THEN 1 ELSE 0) + past.handed[m]
IsCancelled(m) == m \in canceller.removed
\* Another offer with the key has replaced it.
IsReplaced(m) == producer.rule = "replace" /\ \E other \in Messages \ {m} : past.stored[other] > 0

\* When `offer` resolves, the message is in Redis (or has gone the way of all messages).
OfferIsStored == \A m \in Messages :
  producer.offers[m] = "stored" => Places(m) > 0 \/ IsCancelled(m) \/ IsReplaced(m)

\* An offer that is sent again after a reconnect is stored once, unless a copy comes when the message has left.
StoredOnce == \A m \in Messages : past.stored[m] <= 1 \/ m \in past.cameLate

\* A rejected offer (the key had a delayed message) stores nothing, with the same limit.
RejectedIsNotStored == \A m \in Messages :
  producer.offers[m] = "rejected" => past.stored[m] = 0 \/ m \in past.cameLate

\* No message is moved before its deadline on the server's clock.
NeverEarly == ~past.isEarly

\* `cancel`: true means that the message will never be delivered, false that it was moved already or never existed.
CancelIsExact ==
  /\ canceller.verdict = "true" => \A m \in canceller.removed : past.moved[m] = 0 \/ m \in past.cameLate
  /\ canceller.verdict = "false" => canceller.removed = {}

\* Several processes that transfer move each message once.
MovedOnce == \A m \in Messages : past.moved[m] <= past.stored[m]

\* Plain: a message goes to one taker, once.
TakenOnce == \A m \in Messages : past.handed[m] <= past.moved[m] \/ past.isForgotten

\* Aborting a take, a poll that times out, `close()`: no message is lost.
AbortLosesNothing == \A m \in Messages : past.moved[m] > 0 =>
  taker.inHand = m \/ past.handed[m] > 0 \/ \E i \in DOMAIN server.ready : server.ready[i] = m

\* A message that fell due while no process was running is moved as soon as the first one is back; and then it is taken.
DueIsMoved == \A m \in Messages : IsDelayed(m) ~> ~IsDelayed(m)
ReadyIsTaken == (server.ready # <<>>) ~> (server.ready = <<>>)

-----------------------------------------------------------------------------
(* The same promises without their limits. They do not hold, and TLC shows why. *)

StoredOnceAlways == \A m \in Messages : past.stored[m] <= 1
CancelIsExactAlways == canceller.verdict = "true" => \A m \in canceller.removed : past.moved[m] = 0
RejectedIsNotStoredAlways == \A m \in Messages : producer.offers[m] = "rejected" => past.stored[m] = 0
TakenOnceAlways == \A m \in Messages : past.handed[m] <= past.moved[m]

=============================================================================
