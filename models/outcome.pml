/* A save whose answer is lost: resolved by records, or by a fence, or not at all.
 * docs/screening.md, section 8, with drops and retirement from section 11.
 *
 * One study; the save of operation 1 whose answer may never come. Its write may
 * be carried out at any time after it was sent, also when its sender has given up, or never. It may carry
 * an entry. A study remembers its last operation only, so that one more save leaves
 * receipts as the only witness. Other saves, folds, drops and retirements go on. What became of the entry
 * is one step each: fold.pml has what a worker does between them.
 *
 * invariants
 *   S10  code Store.resolve  test TestAnUnknownOutcomeIsResolved
 *       who is told "saved" was saved, for good; who is told "not saved" was not, and will not be
 *   F5  code Store.load  test TestADuplicateIsToldOfWhatLasts
 *       who is told "duplicate" was saved, for good
 *
 * variants
 *   TRANSACTION  the study is written in a transaction, and the answer to its commit is lost
 *   FAILOVER     the primary carries a write out before the majority has it, and may be
 *                deposed: then it is rolled back
 */

/* switches of the unsafe twins:
 * NO_FENCE        a version that has not moved is proof enough
 * BLIND_FENCE     the fence does not ask for the version
 * RECEIPT_FIRST   receipts are read before the study
 * NO_COUNT        an operation that is not among the recent ones was not saved, however many have been since
 * RANGE_LATE      the drop range is written after the pending sets are emptied
 * HORIZON_LATE    the horizon is written after the receipts are deleted
 * LOCAL_RESOLVE   FAILOVER: the resolver reads what the primary has
 * LOCAL_DUPLICATE FAILOVER: a load's word is taken for a duplicate
 */

#define WRITES 2	/* of others */

bool S10 = true, F5 = true;
#define MUST(name, cond) name = (cond); assert(name)

/* The study, as the majority has it. */
byte version = 1, folds, recent;
bool tail;		/* the primary alone has the write on top of that */
bool held;		/* by an open transaction that wrote it */
/* The entry of operation 1, wherever it is. */
mtype = { NONE, PENDING, RECEIPT, QUARANTINE, DROPPED, RETIRED };
mtype entry = NONE;
/* The rest of the database. */
bool epoch;		/* raised by the drop */
bool range, horizon;	/* what the resolver must know about what is gone */

/* The write as it was sent. */
bool sent, done, durable, writeEpoch;
byte filter, filterFolds;
mtype = { OK, REFUSED, SAVED, NOT_SAVED, UNKNOWN };
mtype answer = NONE, verdict = NONE;
bool landed;

#define recorded(e) ((e) == PENDING || (e) == RECEIPT || (e) == QUARANTINE)
#define stored(e) ((e) == RECEIPT || (e) == QUARANTINE)
#define open (tail || held)

inline land() {
	version++; recent = 1; landed = true;
	if :: durable -> entry = PENDING :: else fi;
	MUST(S10, verdict != NOT_SAVED)
}

/* The set, as far as this write goes. It may be as slow as it likes. */
proctype Primary() {
end:	do
	:: d_step { sent && !done && !open && version != filter -> done = true; answer = REFUSED }
#ifdef TRANSACTION
	:: d_step { sent && !done && !open && version == filter -> held = true }
	:: d_step { held -> held = false; done = true }	/* not committed, ever */
	:: d_step { held -> held = false; done = true; land() }
	:: d_step { held && durable -> held = false; done = true; land(); entry = RECEIPT }
#else
#ifdef FAILOVER
	:: d_step { sent && !done && !open && version == filter -> tail = true }
	:: d_step { tail -> tail = false }	/* rolled back; the driver sends it once more, or not */
	:: d_step { tail -> tail = false; done = true; land(); answer = OK }
#else
	:: d_step { sent && !done && !open && version == filter -> done = true; land(); answer = OK }
#endif
#endif
	od
}

proctype Saver() {
	byte v, f, since;
	mtype e;
	bool known, young;
	if :: durable = true :: durable = false fi;
	writeEpoch = epoch;	/* read in the same round as the study, before or after */
	d_step { !open -> filter = version; filterFolds = folds }
	sent = true;
	if
	:: d_step { answer == OK -> verdict = SAVED }
	:: answer == REFUSED
	:: true ->	/* an error that is not a refusal, or no patience left */
		do
		:: verdict == SAVED || verdict == NOT_SAVED -> break
		:: else ->
#ifdef RECEIPT_FIRST
			known = stored(entry);
#endif
#ifdef LOCAL_RESOLVE
			d_step { v = version + tail; f = folds; e = entry; young = (recent == 1 || tail) }
#else
			d_step { v = version; f = folds; e = entry; young = (recent == 1) }
#endif
			if
			:: young || e == PENDING -> verdict = SAVED
			:: else ->
#ifndef RECEIPT_FIRST
				known = stored(entry);
#endif
				since = (v - filter) - (f - filterFolds);
				if
				:: known -> verdict = SAVED
				:: !known && v == filter ->
#ifdef NO_FENCE
					verdict = NOT_SAVED
#else
					d_step { !open ->
						if
#ifdef BLIND_FENCE
						:: true ->
#else
						:: version == filter ->
#endif
							version++; verdict = NOT_SAVED
						:: else
						fi
					}
#endif
#ifdef NO_COUNT
				:: !known && v != filter -> verdict = NOT_SAVED
#else
				:: !known && v != filter && since <= 1 -> verdict = NOT_SAVED
				:: !known && v != filter && since > 1 && !durable -> verdict = UNKNOWN
				:: !known && v != filter && since > 1 && durable ->
					if
					:: range && !writeEpoch -> verdict = UNKNOWN
					:: else ->
						if
						:: horizon -> verdict = UNKNOWN
						:: else -> verdict = NOT_SAVED
						fi
					fi
#endif
				fi
			fi;
			d_step {
				MUST(S10, (verdict == SAVED) <= landed && !(verdict == NOT_SAVED && landed));
				v = 0; f = 0; e = NONE; known = false; young = false; since = 0
			}
			if
			:: verdict == UNKNOWN -> break
			:: verdict == UNKNOWN -> verdict = NONE	/* the ticket is shown again */
			:: else
			fi
		od
	fi
}

proctype Others() {
	byte n;
	do
	:: n == WRITES -> break
	:: d_step { n < WRITES && !open -> n++; version++; recent = 2 }
	od
}

proctype Worker() {
end:	do
	:: d_step { entry == PENDING && !open ->
		version++; folds++;
		if :: epoch && !writeEpoch -> entry = QUARANTINE :: else -> entry = RECEIPT fi }
	od
}

inline clear() {
	if
	:: d_step { entry == PENDING && !writeEpoch && !open -> entry = DROPPED; version++; folds++ }
	:: entry != PENDING || writeEpoch
	fi
}

proctype Dropper() {
#ifdef RANGE_LATE
	epoch = true;
	clear();
	range = true
#else
	range = true;
	epoch = true;
	clear()
#endif
}

inline retire() { d_step { if :: entry == RECEIPT -> entry = RETIRED :: else fi } }

proctype Retirer() {
#ifdef HORIZON_LATE
	retire();
	horizon = true
#else
	horizon = true;
	retire()
#endif
}

/* The same operation, sent again. What it does when it is not told "duplicate" is in fold.pml. */
proctype Again() {
	mtype e;
	bool known, young;
	sent;
	d_step { young = (recent == 1 || tail); e = entry }
	known = young || e == PENDING || stored(entry);
#ifndef LOCAL_DUPLICATE
	if
	:: known ->	/* asked again, of the majority, study first */
		d_step { young = (recent == 1); e = entry }
		known = young || e == PENDING || stored(entry)
	:: else
	fi;
#endif
	if
	:: known -> MUST(F5, landed)
	:: else
	fi
}

init {
	atomic { run Primary(); run Saver(); run Others(); run Worker(); run Dropper(); run Retirer(); run Again() }
}
